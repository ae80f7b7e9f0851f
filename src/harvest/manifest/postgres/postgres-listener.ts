import { randomInt } from "node:crypto";
import { backoffMs } from "../../../core/breaker/backoff.ts";
import type { PgSingleClient } from "../../../stores/postgres/postgres-driver.ts";
import type { Time, Timer } from "../../../time/time.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** A connection that a firewall has dropped is noticed only when it is used. */
const CHECK_MS = 15_000;
const BACKOFF = { baseMs: 100, capMs: 5000 };
/** The largest range of `randomInt`. */
const SESSIONS = 2 ** 48 - 1;

export interface PostgresListenerOptions {
  readonly connection: PostgresConnection;
  /** A name that SQL accepts without quotes. */
  readonly channel: string;
  readonly time: Time;
  readonly onChange: () => void;
  /** Called with the store ids of workers that another one has found dead. */
  readonly onDead: (storeIds: readonly string[]) => void;
  /** The connection holds the advisory lock with this key; undefined when it has broken. */
  readonly onSession: (session: number | undefined) => void;
}

/**
 * Listens for notifications of other workers, and connects again when the connection breaks. The connection holds an
 * advisory lock with a random key. The server releases the lock when this process dies.
 */
export class PostgresListener {
  readonly #options: PostgresListenerOptions;
  #client: PgSingleClient | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #isStopped = true;

  constructor(options: PostgresListenerOptions) {
    this.#options = options;
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
    await this.#options.connection.replied(async () => client?.end()).catch(() => undefined);
  }

  #connect(): void {
    const { connection, channel, onChange, onDead } = this.#options;
    const client = connection.client();
    this.#client = client;
    client.on("error", () => this.#connectLater(client));
    client.on("end", () => this.#connectLater(client));
    client.on("notification", ({ payload = "" }) => {
      if (payload !== "") onDead(payload.split(" "));
      onChange();
    });
    client
      .connect()
      .then(() => this.#beginSession(client))
      .then(() => this.#check(client, `LISTEN ${channel}`))
      .catch(() => this.#connectLater(client));
  }

  async #beginSession(client: PgSingleClient): Promise<void> {
    const session = randomInt(SESSIONS);
    await client.query("SELECT pg_advisory_lock($1)", [session]);
    if (this.#client === client) this.#options.onSession(session);
  }

  /** Calls `onChange` too: a notification that was sent while there was no connection is lost. */
  async #check(client: PgSingleClient, sql: string): Promise<void> {
    await client.query(sql);
    if (this.#client !== client) return;
    this.#failures = 0;
    this.#timer = this.#options.time.setTimer(CHECK_MS, () => {
      this.#check(client, "SELECT 1").catch(() => this.#connectLater(client));
    });
    this.#options.onChange();
  }

  #connectLater(client: PgSingleClient): void {
    if (this.#isStopped || this.#client !== client) return;
    this.#client = undefined;
    this.#timer?.cancel();
    this.#options.onSession(undefined);
    client.end().catch(() => undefined);
    this.#failures += 1;
    this.#timer = this.#options.time.setTimer(backoffMs(BACKOFF, this.#failures, Math.random(), undefined), () =>
      this.#connect(),
    );
  }
}
