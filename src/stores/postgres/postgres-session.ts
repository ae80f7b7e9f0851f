import type { Time } from "../../time/time.ts";
import { replyWithin } from "../reply-within.ts";
import type { PgDriver, PgSingleClient, Queryable, QueryResult, SqlParameter } from "./postgres-driver.ts";

export interface PostgresSessionOptions {
  readonly driver: PgDriver;
  readonly time: Time;
  /**
   * How long each step may take: the connection, a statement, the end. The limits of pg are not used, because they count
   * the time in which this program was blocked.
   */
  readonly timeoutMs: number;
}

export interface SessionListeners {
  /** Called when the connection has failed or ended, also after `end` and `drop`; maybe several times. */
  readonly onLost: () => void;
  readonly onNotification?: (() => void) | undefined;
}

/** One connection to the server. It keeps the process alive only while a step runs. */
export class PostgresSession implements Queryable {
  readonly #client: PgSingleClient;
  readonly #options: PostgresSessionOptions;

  static async open(
    options: PostgresSessionOptions,
    { onLost, onNotification }: SessionListeners,
  ): Promise<PostgresSession> {
    const client = options.driver.client();
    client.on("error", onLost);
    client.on("end", onLost);
    if (onNotification !== undefined) client.on("notification", onNotification);
    const session = new PostgresSession(client, options);
    try {
      await session.#within(client.connect(), `no connection within ${options.timeoutMs} ms`);
    } catch (error) {
      session.#destroy();
      throw error;
    }
    client.unref();
    return session;
  }

  private constructor(client: PgSingleClient, options: PostgresSessionOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** After an error the session must be dropped: the connection may be in the middle of a transaction. */
  async query(sql: string, parameters?: readonly SqlParameter[]): Promise<QueryResult> {
    this.#client.ref();
    try {
      return await this.#within(this.#client.query(sql, parameters), `no reply within ${this.#options.timeoutMs} ms`);
    } finally {
      this.#client.unref();
    }
  }

  /** Resolves when the server has closed the connection, or has not done so in time. */
  async end(): Promise<void> {
    // The caller waits for the end of the connection, so the process must not exit before.
    this.#client.ref();
    try {
      await this.#within(this.#client.end(), "the server did not close the connection");
    } catch {
      this.#destroy();
    }
  }

  /** Ends the connection without waiting for the server. */
  drop(): void {
    this.#client.end().catch(() => undefined);
  }

  #destroy(): void {
    this.#client.connection.stream.destroy();
  }

  async #within<Reply>(reply: Promise<Reply>, message: string): Promise<Reply> {
    return replyWithin(this.#options, reply, () => new Error(message));
  }
}
