import { backoffMs } from "../../../core/breaker/backoff.ts";
import { ConfigError, isDocstokgError, messageOf, StoreError } from "../../../errors.ts";
import {
  loadPgDriver,
  type PgDriver,
  type PgPool,
  type PgPoolClient,
  type PgSingleClient,
  type Queryable,
  type QueryResult,
  queryableOf,
  type SqlParameter,
} from "../../../stores/postgres/postgres-driver.ts";
import { isConnectionError, isTransient } from "../../../stores/postgres/postgres-errors.ts";
import type { SqlStatement } from "../../../stores/postgres/statement-group.ts";
import { pause } from "../../../time/pause.ts";
import type { Time, Timer } from "../../../time/time.ts";
import type { Row } from "../manifest-row.ts";
import { type CommitMark, CommitMarks } from "./commit-marks.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { type QueuedStatement, StatementQueue } from "./statement-queue.ts";

/** A process needs few connections: its works wait for servers, not for the database. */
const CONNECTIONS_MAX = 3;
/** How long an operation is repeated while the server restarts or cannot be reached, with its time in the queue. */
const REPEAT_MS = 10 * 60_000;
const BACKOFF = { baseMs: 50, capMs: 2000 };
/** After an interrupt, a server from which nothing arrives for so long is given up. A container has 10 s to stop. */
const SILENCE_MS = 3000;
/** The server cuts longer names of applications. */
const APPLICATION_CHARS = 63;

/**
 * Connections to the database of a manifest. A transaction whose connection breaks is repeated until the server is back.
 * It is never applied twice, because it writes a mark that shows whether it was committed. If the server does not come
 * back in time, the operation rejects with a StoreError, and the transaction may have been committed.
 */
export class PostgresConnection {
  readonly #pool: PgPool;
  readonly #driver: PgDriver;
  readonly #name: string;
  readonly #time: Time;
  readonly #schema: string;
  readonly #marks = new CommitMarks();
  /** The names that connections of the pool have at the server. */
  readonly #applications = new WeakMap<PgPoolClient, string>();
  /** The worker of this process. Its connections are named after it, so that another worker can end them when it dies. */
  worker: number | undefined;
  readonly #closing = new AbortController();
  /** Operations that wait for the server. */
  #pending = 0;
  #silence: Timer | undefined;
  /** Look-ups have a queue of their own: they never wait for locks. Without a change they need no mark. */
  readonly #lookUps = new StatementQueue(statements =>
    this.#repeated(() => this.#withGroup(statements), deadlineOf(statements)),
  );
  readonly #changes = new StatementQueue(statements => this.#runTogether(statements));

  /** @param connections how many there are at most. @default 3 */
  static async open(address: PostgresAddress, time: Time, connections = CONNECTIONS_MAX): Promise<PostgresConnection> {
    const { url, schema, leaseMs } = address;
    const driver = await loadPgDriver({ url, schema, idleInTransactionMs: leaseMs });
    return new PostgresConnection(driver, driver.pool(connections), address, time);
  }

  private constructor(driver: PgDriver, pool: PgPool, { name, schema }: PostgresAddress, time: Time) {
    this.#driver = driver;
    this.#pool = pool;
    this.#name = name;
    this.#schema = schema;
    this.#time = time;
    // The query that uses a broken connection fails, or the next one. Without a listener the event would end the process.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", client => client.on("error", () => undefined));
  }

  /** The name of the connections of a worker, which no other worker of the database has. */
  applicationOf(worker: number): string {
    return `docstokg worker ${worker} of ${this.#schema}`.slice(0, APPLICATION_CHARS);
  }

  /** A connection that is not in the pool, for notifications. */
  client(): PgSingleClient {
    return this.#driver.client();
  }

  /** A connection that is not in the pool, for a long transaction. */
  async transactionClient(): Promise<PgSingleClient> {
    const client = this.#driver.client();
    // The query that uses the connection reports that it broke.
    client.on("error", () => undefined);
    await client.connect();
    await client.query("SET idle_in_transaction_session_timeout = 0");
    if (this.worker !== undefined) await client.query(setApplication(this.applicationOf(this.worker)));
    return client;
  }

  /** Runs one statement that changes nothing. */
  async read(sql: string, parameters: readonly SqlParameter[] = []): Promise<readonly Row[]> {
    const { rows } = await this.#repeated(() => this.#withClient(client => client.query(sql, parameters)));
    return rows;
  }

  /**
   * Like `read`, for a statement that finds rows by their keys: it is sent together with others, and the server parses and
   * plans it once for a connection.
   */
  async lookUp(sql: string, parameters: readonly SqlParameter[]): Promise<readonly Row[]> {
    const rows = await this.#lookUps.run({ text: sql, values: parameters, untilUs: this.#deadlineUs() });
    return rows ?? [];
  }

  /** Like `read` for rows that the caller can do without: no rows if the server cannot be reached, or is late. */
  async lookUpWithin(ms: number, sql: string, parameters: readonly SqlParameter[]): Promise<readonly Row[]> {
    const { promise: late, resolve } = Promise.withResolvers<readonly Row[]>();
    const timer = this.#time.setTimer(ms, () => resolve([]));
    const found = this.#withClient(client => client.query(sql, parameters)).then(
      ({ rows }) => rows,
      error => {
        if (isTransient(error)) return [];
        throw error;
      },
    );
    try {
      return await Promise.race([found, late]);
    } finally {
      timer.cancel();
    }
  }

  /** Like `transaction`, for one statement. */
  write(sql: string, parameters: readonly SqlParameter[] = []): Promise<QueryResult> {
    return this.transaction(client => client.query(sql, parameters));
  }

  /** Runs a transaction. The action is called again if the transaction was not committed, and never if it may have been. */
  transaction<Value>(action: (client: Queryable) => Promise<Value>): Promise<Value> {
    let inDoubt: { readonly mark: CommitMark; readonly value: Value } | undefined;
    return this.#repeated(async () => {
      if (inDoubt !== undefined) {
        const { mark, value } = inDoubt;
        const isCommitted = await this.#wasCommitted(mark);
        inDoubt = undefined;
        if (isCommitted) return value;
      }
      return this.#withClient(async client => {
        const mark = this.#marks.next();
        try {
          await client.query(`BEGIN; ${this.#marks.textFor(mark)}`);
          const value = await action(client);
          try {
            await client.query("COMMIT");
          } catch (error) {
            if (isConnectionError(error)) inDoubt = { mark, value };
            throw error;
          }
          return value;
        } finally {
          if (inDoubt === undefined) this.#marks.release(mark);
        }
      });
    });
  }

  /**
   * Like `write`, in one exchange with the server: a transaction needs three. The statement is sent and committed together
   * with others, and the server parses and plans it once for a connection.
   * @param work that the statement changes: its parameter `$1`
   * @param parameters from `$2` on
   * @returns its rows; undefined if the statement was applied and its reply was lost
   */
  apply(work: number, sql: string, parameters: readonly SqlParameter[]): Promise<readonly Row[] | undefined> {
    const untilUs = this.#deadlineUs();
    return this.#changes.run({ text: sql, values: [work, ...parameters], work, untilUs });
  }

  #runTogether(statements: readonly QueuedStatement[]): Promise<readonly (readonly Row[])[] | undefined> {
    let inDoubt: CommitMark | undefined;
    return this.#repeated(async () => {
      if (inDoubt !== undefined && (await this.#wasCommitted(inDoubt))) return undefined;
      inDoubt = undefined;
      const mark = this.#marks.next();
      try {
        const [, ...results] = await this.#withGroup([this.#marks.statementFor(mark), ...statements]);
        return results;
      } catch (error) {
        if (isConnectionError(error)) inDoubt = mark;
        throw error;
      } finally {
        if (inDoubt === undefined) this.#marks.release(mark);
      }
    }, deadlineOf(statements));
  }

  /** For a transaction whose connection broke before the reply. Releases the mark. */
  async #wasCommitted(mark: CommitMark): Promise<boolean> {
    try {
      const isCommitted = await this.#withClient(client => this.#marks.isCommitted(client, mark));
      this.#marks.release(mark);
      return isCommitted;
    } catch (error) {
      if (isTransient(error)) throw error;
      // Not the error of SQL: it would say that the transaction has not taken effect.
      throw new StoreError(`cannot look up a commit in the manifest ${this.#name}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  }

  /**
   * Runs an action while the manifest is opened. It is not repeated: a server that cannot be reached is a StoreError, any
   * other error a ConfigError.
   */
  async check<Value>(action: (client: Queryable) => Promise<Value>): Promise<Value> {
    try {
      return await this.#withClient(action);
    } catch (error) {
      if (isDocstokgError(error)) throw error;
      if (isTransient(error)) throw this.#unreachable(error);
      const message = `cannot use the manifest ${this.#name}: ${reasonOf(error)}`;
      throw new ConfigError([{ where: "--manifest", path: "", message }], { cause: error });
    }
  }

  /**
   * Operations that wait for a server which is away fail now, and later ones are not repeated. If no operation ends for
   * `SILENCE_MS`, all fail: a server that is suspended or cannot be reached may never answer.
   */
  stopWaiting(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#awaitReply();
  }

  async close(): Promise<void> {
    this.stopWaiting();
    await this.replied(() => this.#pool.end());
    // The pool does not wait until the server has closed its connections, which a suspended one never does.
    this.#driver.abandon();
  }

  /** Runs an operation that waits for the server. */
  async replied<Value>(operation: () => Promise<Value>): Promise<Value> {
    this.#pending += 1;
    if (this.#pending === 1) this.#awaitReply();
    try {
      return await operation();
    } finally {
      this.#pending -= 1;
      this.#awaitReply();
    }
  }

  #awaitReply(): void {
    this.#silence?.cancel();
    if (this.#pending > 0 && this.#closing.signal.aborted)
      this.#silence = this.#time.setTimer(SILENCE_MS, () => this.#driver.abandon());
  }

  #withClient<Value>(action: (client: Queryable) => Promise<Value>): Promise<Value> {
    return this.replied(() => this.#withPoolClient(action));
  }

  async #withPoolClient<Value>(action: (client: Queryable) => Promise<Value>): Promise<Value> {
    const client = await this.#connect();
    try {
      const value = await action(queryableOf(client));
      client.release();
      return value;
    } catch (error) {
      await this.#abandon(client, error);
      throw error;
    }
  }

  #withGroup(statements: readonly SqlStatement[]): Promise<readonly (readonly Row[])[]> {
    return this.replied(() => this.#groupOnClient(statements));
  }

  /** See `StatementGroup` for why the connection is closed after an error. */
  async #groupOnClient(statements: readonly SqlStatement[]): Promise<readonly (readonly Row[])[]> {
    const client = await this.#connect();
    let isUsable = false;
    try {
      const results = await this.#driver.runGroup(client, statements);
      isUsable = true;
      return results;
    } finally {
      client.release(!isUsable);
    }
  }

  /** A connection of the pool that has the name of the worker. */
  async #connect(): Promise<PgPoolClient> {
    const client = await this.#pool.connect();
    if (this.worker === undefined) return client;
    const name = this.applicationOf(this.worker);
    if (this.#applications.get(client) === name) return client;
    try {
      await client.query(setApplication(name));
    } catch (error) {
      await this.#abandon(client, error);
      throw error;
    }
    this.#applications.set(client, name);
    return client;
  }

  /** After an error of SQL the connection is kept; after any other its state is not known. */
  async #abandon(client: PgPoolClient, error: unknown): Promise<void> {
    let isUsable = !isConnectionError(error);
    if (isUsable) {
      try {
        await client.query("ROLLBACK");
      } catch {
        isUsable = false;
      }
    }
    client.release(!isUsable);
  }

  #deadlineUs(): number {
    return this.#time.monotonicUs() + REPEAT_MS * 1000;
  }

  async #repeated<Value>(action: () => Promise<Value>, untilUs = this.#deadlineUs()): Promise<Value> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await action();
      } catch (error) {
        if (!isTransient(error)) throw error;
        if (this.#closing.signal.aborted || this.#time.monotonicUs() >= untilUs) throw this.#unreachable(error);
      }
      await this.#pause(backoffMs(BACKOFF, attempt, Math.random(), undefined));
    }
  }

  #unreachable(error: unknown): StoreError {
    return new StoreError(`cannot reach the manifest ${this.#name}: ${reasonOf(error)}`, { cause: error });
  }

  /** Ends early when the connection is closed. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    await pause(this.#time, ms, signal).catch(error => {
      if (!signal.aborted) throw error;
    });
  }
}

/** A group is repeated no longer than the first of its statements. */
function deadlineOf(statements: readonly QueuedStatement[]): number {
  return Math.min(...statements.map(({ untilUs }) => untilUs));
}

/** The name needs no quotes within it: a schema has letters, digits and underscores. */
function setApplication(name: string): string {
  return `SET application_name = '${name}'`;
}

/** If a host has several addresses and none answers, the error has a code and an empty message. */
function reasonOf(error: unknown): string {
  const message = messageOf(error);
  if (message !== "") return message;
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
