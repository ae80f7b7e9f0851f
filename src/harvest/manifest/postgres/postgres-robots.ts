import type { KeptRobots, KeptRobotsFile, RobotsFile } from "../../../http/robots/kept-robots.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** The first request to a host waits for this. Then robots.txt is requested, which takes about as long. */
const FIND_MS = 1000;

/** The table `robots`. */
export class PostgresRobots implements KeptRobots {
  readonly #connection: PostgresConnection;

  constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  async find(origin: string): Promise<KeptRobotsFile | undefined> {
    const [row] = await this.#connection.lookUpWithin(
      FIND_MS,
      `SELECT status, text, ${NOW_MS} - read_ms AS age_ms FROM robots WHERE origin = $1`,
      [origin],
    );
    if (row === undefined) return undefined;
    const ageMs = Number(row["age_ms"]);
    // The clock of the server was set back: the age is not known.
    return ageMs < 0 ? undefined : { status: Number(row["status"]), text: String(row["text"]), ageMs };
  }

  async save(origin: string, { status, text }: RobotsFile): Promise<void> {
    await this.#connection.write(
      `INSERT INTO robots (origin, status, text, read_ms) VALUES ($1, $2, $3, ${NOW_MS})
       ON CONFLICT (origin) DO UPDATE SET status = excluded.status, text = excluded.text, read_ms = excluded.read_ms`,
      // PostgreSQL stores neither NUL characters nor lone surrogates.
      [origin, status, text.replaceAll("\0", "").toWellFormed()],
    );
  }
}
