import { backoffMs } from "../../../core/breaker/backoff.ts";
import type { Time, Timer } from "../../../time/time.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PgSingleClient } from "./postgres-driver.ts";

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
      .then(() => client.query(`LISTEN ${this.#channel}`))
      .then(() => {
        this.#failures = 0;
        // What happened before was not heard.
        this.#onChange();
      })
      .catch(() => this.#connectLater(client));
  }

  #connectLater(client: PgSingleClient): void {
    if (this.#isStopped || this.#client !== client) return;
    this.#client = undefined;
    client.end().catch(() => undefined);
    this.#failures += 1;
    this.#timer = this.#time.setTimer(backoffMs(BACKOFF, this.#failures, Math.random(), undefined), () =>
      this.#connect(),
    );
  }
}
