import { backoffMs } from "../../../core/breaker/backoff.ts";
import type { PgSingleClient } from "../../../stores/postgres/postgres-driver.ts";
import type { Time, Timer } from "../../../time/time.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** A connection that a firewall has dropped is noticed only when it is used. */
const CHECK_MS = 15_000;
const BACKOFF = { baseMs: 100, capMs: 5000 };

/** Listens for notifications of other workers, and connects again when the connection breaks. */
export class PostgresListener {
  readonly #connection: PostgresConnection;
  readonly #channel: string;
  readonly #time: Time;
  readonly #onChange: () => void;
  #client: PgSingleClient | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #isStopped = true;

  /** @param channel a plain identifier */
  constructor(connection: PostgresConnection, channel: string, time: Time, onChange: () => void) {
    this.#connection = connection;
    this.#channel = channel;
    this.#time = time;
    this.#onChange = onChange;
  }

  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    this.#connect();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    const client = this.#client;
    this.#client = undefined;
    // The connection may be broken already.
    await client?.end().catch(() => undefined);
  }

  #connect(): void {
    const client = this.#connection.client();
    this.#client = client;
    client.on("error", () => this.#connectLater(client));
    client.on("end", () => this.#connectLater(client));
    client.on("notification", () => this.#onChange());
    client
      .connect()
      .then(() => this.#check(client, `LISTEN ${this.#channel}`))
      .catch(() => this.#connectLater(client));
  }

  /** Calls `onChange` too: a notification that was sent while there was no connection is lost. */
  async #check(client: PgSingleClient, sql: string): Promise<void> {
    await client.query(sql);
    if (this.#client !== client) return;
    this.#failures = 0;
    this.#timer = this.#time.setTimer(CHECK_MS, () => {
      this.#check(client, "SELECT 1").catch(() => this.#connectLater(client));
    });
    this.#onChange();
  }

  #connectLater(client: PgSingleClient): void {
    if (this.#isStopped || this.#client !== client) return;
    this.#client = undefined;
    this.#timer?.cancel();
    client.end().catch(() => undefined);
    this.#failures += 1;
    this.#timer = this.#time.setTimer(backoffMs(BACKOFF, this.#failures, Math.random(), undefined), () =>
      this.#connect(),
    );
  }
}
