import { messageOf, StoreError } from "../../errors.ts";
import type { PgDriver, PgSingleClient, QueryResult, SqlParameter } from "./postgres-driver.ts";
import { sqlStateOf } from "./postgres-errors.ts";
import { FOREIGN_TABLES } from "./postgres-tables.ts";

/**
 * After these states the store cannot be used: wrong password or user, unknown database, no rights, a schema with other
 * tables, or a schema that is still missing after the second attempt (3F000).
 */
const PERMANENT_STATES: ReadonlySet<string> = new Set(["28P01", "28000", "3D000", "3F000", "42501", FOREIGN_TABLES]);

/** The schema was dropped while the connection was open: a new connection creates it again. */
const DROPPED_STATES: ReadonlySet<string> = new Set(["42883", "42P01", "3F000"]);

/**
 * One connection, which is opened when a statement needs it, and again after an error. It keeps the process alive only
 * while a statement runs.
 */
export class PostgresClient {
  readonly #driver: PgDriver;
  readonly #prepare: (client: PgSingleClient) => Promise<void>;
  #client: Promise<PgSingleClient> | undefined;
  /** Settles when the last statement has ended: statements run one at a time, in the order of the calls. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param prepare called with each new connection. @default nothing to prepare */
  constructor(driver: PgDriver, prepare: (client: PgSingleClient) => Promise<void> = async () => undefined) {
    this.#driver = driver;
    this.#prepare = prepare;
  }

  /** Runs one statement, or several without parameters. Returns a result for each statement. */
  query(sql: string, parameters?: readonly SqlParameter[]): Promise<readonly QueryResult[]> {
    const result = this.#last.then(() => this.#queryWithRetry(sql, parameters));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #queryWithRetry(sql: string, parameters?: readonly SqlParameter[]): Promise<readonly QueryResult[]> {
    try {
      return await this.#query(sql, parameters);
    } catch (error) {
      // The statement had no effect and is run again. A second failure is final: the database user has no right to
      // create the schema.
      if (error instanceof StoreError && DROPPED_STATES.has(sqlStateOf(error.cause) ?? ""))
        return this.#query(sql, parameters);
      throw error;
    }
  }

  async #query(sql: string, parameters?: readonly SqlParameter[]): Promise<readonly QueryResult[]> {
    const opening = this.#opened();
    this.#client = opening;
    const client = await opening.catch(error => {
      if (this.#client === opening) this.#client = undefined;
      throw storeErrorOf(error);
    });
    client.ref();
    try {
      const result = await client.query(sql, parameters);
      return Array.isArray(result) ? (result as readonly QueryResult[]) : [result];
    } catch (error) {
      // The connection may be in the middle of a transaction, or broken.
      this.#drop(client);
      throw storeErrorOf(error);
    } finally {
      client.unref();
    }
  }

  /** Ends the connection; the next statement opens another one. */
  async close(): Promise<void> {
    const opening = this.#client;
    this.#client = undefined;
    // A connection that could not be opened has nothing to close.
    const client = await opening?.catch(() => undefined);
    // The caller waits for the end of the connection, so the process must not exit before.
    client?.ref();
    await client?.end().catch(() => undefined);
  }

  #opened(): Promise<PgSingleClient> {
    return this.#client ?? this.#open();
  }

  async #open(): Promise<PgSingleClient> {
    const client = this.#driver.client();
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
    await client.connect();
    try {
      await this.#prepare(client);
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
    client.unref();
    return client;
  }

  #drop(client: PgSingleClient): void {
    const opening = this.#client;
    opening?.then(
      current => {
        if (current === client && this.#client === opening) this.#client = undefined;
      },
      () => undefined,
    );
    client.end().catch(() => undefined);
  }
}

function storeErrorOf(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const isPermanent = PERMANENT_STATES.has(sqlStateOf(error) ?? "") || code === "ENOTFOUND";
  return new StoreError(`postgres: ${messageOf(error)}`, { cause: error, isPermanent });
}
