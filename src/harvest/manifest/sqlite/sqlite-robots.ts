import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { KeptRobots, KeptRobotsFile, RobotsFile } from "../../../http/robots/kept-robots.ts";
import type { Time } from "../../../time/time.ts";

/** The table `robots`. */
export class SqliteRobots implements KeptRobots {
  readonly #time: Time;
  readonly #find: StatementSync;
  readonly #save: StatementSync;

  constructor(db: DatabaseSync, time: Time) {
    this.#time = time;
    this.#find = db.prepare("SELECT status, text, read_ms FROM robots WHERE origin = ?");
    this.#save = db.prepare("INSERT OR REPLACE INTO robots (origin, status, text, read_ms) VALUES (?, ?, ?, ?)");
  }

  async find(origin: string): Promise<KeptRobotsFile | undefined> {
    const row = this.#find.get(origin);
    if (row === undefined) return undefined;
    const ageMs = this.#time.wallMs() - Number(row["read_ms"]);
    // The clock was set back: the age is not known.
    return ageMs < 0 ? undefined : { status: Number(row["status"]), text: String(row["text"]), ageMs };
  }

  async save(origin: string, { status, text }: RobotsFile): Promise<void> {
    this.#save.run(origin, status, text, Math.round(this.#time.wallMs()));
  }
}
