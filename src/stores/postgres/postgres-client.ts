import { messageOf, StoreError } from "../../errors.ts";
import type { Queryable, QueryResult, SqlParameter } from "./postgres-driver.ts";
import { isUnusableAddress, sqlStateOf } from "./postgres-errors.ts";
import { PostgresSession, type PostgresSessionOptions } from "./postgres-session.ts";
import { FOREIGN_TABLES } from "./postgres-tables.ts";

/**
 * After these states the store cannot be used: wrong password or user, unknown database, no rights, a schema with other
 * tables, or a schema that is still missing after the second attempt (3F000).
 */
const PERMANENT_STATES: ReadonlySet<string> = new Set(["28P01", "28000", "3D000", "3F000", "42501", FOREIGN_TABLES]);

/** The schema was dropped while the connection was open: a new connection creates it again. */
const DROPPED_STATES: ReadonlySet<string> = new Set(["42883", "42P01", "3F000"]);

/** A statement that has failed. */
interface Failure {
  readonly error: unknown;
  /** Statements that were queued until then fail too. */
  readonly untilUs: number;
}

/**
 * Runs statements one after the other on one connection, which is opened when a statement needs it, and again after an
 * error. If the server does not answer, each statement would take `timeoutMs`. So a statement that fails takes those with
 * it that have waited as long, and all that are queued if there is no connection.
 */
export class PostgresClient {
  readonly #options: PostgresSessionOptions;
  readonly #prepare: (session: Queryable) => Promise<void>;
  #session: Promise<PostgresSession> | undefined;
  /** Why the last connection could not be opened. */
  #openingError: StoreError | undefined;
  /** Settles when the last statement has ended. */
  #last: Promise<Failure | undefined> = Promise.resolve(undefined);

  /** @param prepare called with each new connection. @default nothing to prepare */
  constructor(options: PostgresSessionOptions, prepare: (session: Queryable) => Promise<void> = async () => undefined) {
    this.#options = options;
    this.#prepare = prepare;
  }

  /** Runs one statement, or several without parameters. Returns a result for each statement. */
  query(sql: string, parameters?: readonly SqlParameter[]): Promise<readonly QueryResult[]> {
    const queuedUs = this.#options.time.monotonicUs();
    const before = this.#last;
    const result = before.then(failure => {
      if (failure !== undefined && queuedUs <= failure.untilUs) throw failure.error;
      return this.#queryWithRetry(sql, parameters);
    });
    this.#last = result.then(
      () => undefined,
      async error => {
        const failure = await before;
        return error === failure?.error ? failure : this.#failureOf(error);
      },
    );
    return result;
  }

  #failureOf(error: unknown): Failure {
    const { time, timeoutMs } = this.#options;
    const nowUs = time.monotonicUs();
    return { error, untilUs: error === this.#openingError ? nowUs - 1 : nowUs - timeoutMs * 1000 };
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
    const opening = this.#session ?? this.#open();
    this.#session = opening;
    const session = await opening.catch(error => {
      this.#forget(opening);
      this.#openingError = storeErrorOf(error);
      throw this.#openingError;
    });
    try {
      const result = await session.query(sql, parameters);
      return Array.isArray(result) ? (result as readonly QueryResult[]) : [result];
    } catch (error) {
      this.#forget(opening);
      session.drop();
      throw storeErrorOf(error);
    }
  }

  /** Ends the connection; the next statement opens another one. */
  async close(): Promise<void> {
    const opening = this.#session;
    this.#session = undefined;
    // A connection that could not be opened has nothing to close.
    const session = await opening?.catch(() => undefined);
    await session?.end();
  }

  #open(): Promise<PostgresSession> {
    const opening: Promise<PostgresSession> = PostgresSession.open(this.#options, {
      onLost: () => this.#forget(opening),
    }).then(async session => {
      try {
        await this.#prepare(session);
      } catch (error) {
        session.drop();
        throw error;
      }
      return session;
    });
    return opening;
  }

  #forget(opening: Promise<PostgresSession>): void {
    if (this.#session === opening) this.#session = undefined;
  }
}

function storeErrorOf(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const isPermanent = PERMANENT_STATES.has(sqlStateOf(error) ?? "") || code === "ENOTFOUND" || isUnusableAddress(error);
  return new StoreError(`postgres: ${messageOf(error)}`, { cause: error, isPermanent });
}
