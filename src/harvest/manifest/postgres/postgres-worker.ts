import { hostname } from "node:os";
import type { Queryable, QueryResult, SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import { sqlStateOf } from "../../../stores/postgres/postgres-errors.ts";
import type { Time, Timer } from "../../../time/time.ts";
import { LeaseLostError } from "../lease-lost-error.ts";
import { ALL_INHERITED, TAKEN_COLUMNS, type TakenWork, takenOfRow } from "../manifest-queue.ts";
import type { Row } from "../manifest-row.ts";
import type { WorkerStatus } from "../manifest-workers.ts";
import { QueueClock } from "../queue-clock.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** A lease is renewed this often before it ends, so that one lost renewal costs nothing. */
const RENEWALS_PER_LEASE = 4;
/** A list is added in many transactions; workers need not be notified of each. */
const ANNOUNCE_MS = 250;
/** A notification has at most 8,000 bytes. The leases of workers that are not named end at their time. */
const ANNOUNCED_MAX = 100;
const FOREIGN_KEY_VIOLATION = "23503";

export interface PostgresWorkerOptions {
  readonly connection: PostgresConnection;
  /** For the lease and the session: they are renewed also while all operations wait for locks. */
  readonly leaseConnection: PostgresConnection;
  readonly leaseMs: number;
  /** The channel of notifications: works were added or given back, or a run has ended. */
  readonly channel: string;
  readonly time: Time;
  /** Called when a lease was renewed. */
  readonly onRenewed: () => Promise<void>;
  /**
   * Called with true when the lease has ended as far as this process knows: another worker may have its works, or may take
   * them at any time. Called with false when the lease was renewed after that, because no other worker had done so.
   */
  readonly onOverdue: (isOverdue: boolean) => void;
  /** Called when the lease is lost, or can no longer be renewed. */
  readonly onLost: (error: unknown) => void;
}

/**
 * This process as a worker of a run: a row with a lease. Works are taken in its name. When the lease ends, another worker
 * takes over its works and deletes the row; from then on the database refuses everything in its name. While the server is
 * away no worker can do that, so a lease that was not renewed in time is lost only if the row is gone.
 */
export class PostgresWorker {
  readonly #options: PostgresWorkerOptions;
  /** Set to the clock of the server with each renewal. */
  readonly clock: QueueClock;
  #id: number | undefined;
  #renewal: Timer | undefined;
  #expiry: Timer | undefined;
  #isOverdue = false;
  #lost: LeaseLostError | undefined;
  #announcement: Timer | undefined;
  #session: number | undefined;
  /** Writes of the session run one after the other, so that an earlier session never replaces a later one. */
  #publishing: Promise<void> = Promise.resolve();
  /** The id of this process in the store of the limits. Other workers end its leases there when it dies. */
  storeId: string | undefined;
  /** Published with each renewal, for `docstokg status`. */
  statusOf: () => WorkerStatus = () => ({ done: 0, failed: 0, bytes: 0, inFlight: 0 });

  constructor(options: PostgresWorkerOptions) {
    this.#options = options;
    this.clock = new QueueClock(options.time);
  }

  /** Throws a LeaseLostError if another worker has taken over. */
  get id(): number {
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#id === undefined)
      throw new TypeError("works are taken and settled by a worker: call beginRun or joinRun");
    return this.#id;
  }

  get isActive(): boolean {
    return this.#id !== undefined;
  }

  /** Registers this process as a worker of the run, and keeps its lease. */
  async begin(run: number, isListing: boolean): Promise<void> {
    await this.end();
    const { connection, leaseConnection, leaseMs } = this.#options;
    const { rows, startedUs } = await this.#lease(
      `INSERT INTO workers (run, name, is_listing, started_ms, lease_until_ms, store_id)
       VALUES ($1, $2, $3, ${NOW_MS}, ${NOW_MS} + $4::bigint, $5) RETURNING id, ${NOW_MS} AS now_ms`,
      [run, `${hostname()}:${process.pid}`, isListing, leaseMs, this.storeId ?? null],
    );
    this.#id = Number(rows[0]?.["id"]);
    connection.worker = this.#id;
    leaseConnection.worker = this.#id;
    this.#renewed(startedUs, rows);
    if (this.#session !== undefined) await this.setSession(this.#session);
  }

  /**
   * Publishes the key of the advisory lock that a connection of this process holds: other workers notice when it ends.
   * @param session undefined if there is no such connection now; then only the lease counts
   */
  setSession(session: number | undefined): Promise<void> {
    this.#session = session;
    // If the key cannot be written, only the lease counts.
    this.#publishing = this.#publishing.then(() => this.#publishSession()).catch(() => undefined);
    return this.#publishing;
  }

  /** The list is complete: other workers of the run need not wait for more. */
  async endListing(): Promise<void> {
    await this.#options.connection.write("UPDATE workers SET is_listing = false WHERE id = $1", [this.id]);
    await this.announce();
  }

  /** Gives the works back and ends the lease. */
  async end(): Promise<void> {
    const id = this.#id;
    this.#stop();
    this.#announcement?.cancel();
    this.#announcement = undefined;
    this.#id = undefined;
    this.#isOverdue = false;
    this.#lost = undefined;
    if (id === undefined) return;
    await this.#options.connection.transaction(async client => {
      await client.query(
        `WITH held AS (SELECT id FROM works WHERE taken_by = $1 ORDER BY id FOR UPDATE)
         UPDATE works SET taken_by = NULL FROM held WHERE works.id = held.id`,
        [id],
      );
      await client.query("DELETE FROM workers WHERE id = $1", [id]);
    });
    await this.announce();
  }

  /** Locks the work. Throws a LeaseLostError if this worker does not have it. */
  async check(client: Queryable, work: number): Promise<void> {
    const { rowCount } = await client.query("SELECT 1 FROM works WHERE id = $1 AND taken_by = $2 FOR UPDATE", [
      work,
      this.id,
    ]);
    if (rowCount !== 1) throw this.#lose();
  }

  /**
   * Applies a statement to a work of this worker, in one exchange (see `PostgresConnection.apply`).
   * @param parts the parts of its `WITH` clause; `$1` is the work and `$2` this worker. Each part must select from
   * `changed`, which has a row only if this worker has the work
   */
  async apply(
    work: number,
    parts: readonly string[],
    result: string,
    parameters: readonly SqlParameter[],
  ): Promise<readonly Row[] | undefined> {
    const held = "changed AS (SELECT id FROM works WHERE id = $1 AND taken_by = $2 FOR UPDATE)";
    const sql = `WITH ${[held, ...parts].join(", ")} ${result}`;
    const rows = await this.#options.connection.apply(work, sql, [this.id, ...parameters]);
    if (rows?.length === 0) throw this.#lose();
    return rows;
  }

  /** Changes columns of a work of this worker, in one exchange. @param columns as in `UPDATE`; parameters from `$3` */
  async changeTaken(work: number, columns: string, parameters: readonly SqlParameter[]): Promise<void> {
    const part = `set_columns AS (UPDATE works SET ${columns} WHERE id IN (SELECT id FROM changed))`;
    await this.apply(work, [part], "SELECT 1 FROM changed", parameters);
  }

  /**
   * Like `changeTaken`, and gives the work back. Returns its state. If the work has inherited more than `inherited` texts,
   * nothing is changed, and the work is returned.
   * @param furtherParts of the statement; `released` has the id of the work if it is given back. @default none
   */
  async release(
    work: number,
    columns: string,
    parameters: readonly SqlParameter[],
    inherited = ALL_INHERITED,
    furtherParts: readonly string[] = [],
  ): Promise<string | TakenWork> {
    const part = `released AS (UPDATE works SET ${columns}, taken_by = NULL WHERE id IN (SELECT id FROM changed)
      AND json_array_length(coalesce(inherited, '[]')::json) <= $${parameters.length + 3}::bigint RETURNING id, state)`;
    const result = "SELECT (SELECT state FROM released) AS state FROM changed";
    const rows = await this.apply(work, [part, ...furtherParts], result, [...parameters, inherited]);
    const state = rows?.[0]?.["state"];
    if (typeof state === "string") return state;
    // The work has inherited more, or the reply was lost.
    const sql = `SELECT state, taken_by, ${TAKEN_COLUMNS} FROM works WHERE id = $1`;
    const [row = {}] = await this.#options.connection.lookUp(sql, [work]);
    return row["taken_by"] === this.id ? takenOfRow(row) : String(row["state"]);
  }

  /** Takes works in the name of this worker: the last parameter of the statement is its id. */
  async take(sql: string, parameters: readonly SqlParameter[]): Promise<QueryResult> {
    try {
      return await this.#options.connection.write(sql, [...parameters, this.id]);
    } catch (error) {
      throw sqlStateOf(error) === FOREIGN_KEY_VIOLATION ? this.#lose() : error;
    }
  }

  /** Like `announce`, once for all works that are added within `ANNOUNCE_MS`. */
  announceSoon(): void {
    this.#announcement ??= this.#options.time.setTimer(ANNOUNCE_MS, () => {
      this.#announcement = undefined;
      // Workers also read the queue when they renew their leases.
      this.announce().catch(() => undefined);
    });
  }

  /**
   * Notifies all workers, which then read the queue.
   * @param dead the store ids of workers that were found dead. @default none
   */
  async announce(dead: readonly string[] = []): Promise<void> {
    this.#announcement?.cancel();
    this.#announcement = undefined;
    const { connection, channel } = this.#options;
    await connection.read("SELECT pg_notify($1, $2)", [channel, dead.slice(0, ANNOUNCED_MAX).join(" ")]);
  }

  async #publishSession(): Promise<void> {
    if (this.#id === undefined) return;
    await this.#options.leaseConnection.transaction(client =>
      client.query("UPDATE workers SET session = $2 WHERE id = $1", [this.#id ?? null, this.#session ?? null]),
    );
  }

  #renewed(startedUs: number, [row]: readonly Row[]): void {
    const { leaseMs, time } = this.#options;
    this.clock.set(Number(row?.["now_ms"]));
    this.#stop();
    // Below 0 if the reply was lost, and the server could only be asked later whether the lease was renewed.
    const leftMs = leaseMs - (time.monotonicUs() - startedUs) / 1000;
    this.#setOverdue(leftMs <= 0);
    if (leftMs > 0) this.#expiry = time.setTimer(leftMs, () => this.#setOverdue(true));
    this.#renewal = time.setTimer(leftMs > 0 ? leaseMs / RENEWALS_PER_LEASE : 0, () => {
      const id = this.#id;
      this.#renew().catch(error => {
        if (id === this.#id) this.#options.onLost(error);
      });
    });
  }

  #setOverdue(isOverdue: boolean): void {
    if (isOverdue === this.#isOverdue) return;
    this.#isOverdue = isOverdue;
    this.#options.onOverdue(isOverdue);
  }

  /** Begins or renews a lease. Returns when it was sent, at the last try: the server may have been away before. */
  async #lease(
    sql: string,
    parameters: readonly SqlParameter[],
  ): Promise<QueryResult & { readonly startedUs: number }> {
    const { leaseConnection, time } = this.#options;
    return leaseConnection.transaction(async client => {
      const startedUs = time.monotonicUs();
      const { rows, rowCount } = await client.query(sql, parameters);
      return { rows, rowCount, startedUs };
    });
  }

  async #renew(): Promise<void> {
    const { leaseMs, onRenewed } = this.#options;
    const id = this.#id;
    if (id === undefined) return;
    const { rows, rowCount, startedUs } = await this.#lease(
      `UPDATE workers SET lease_until_ms = ${NOW_MS} + $2::bigint, status = $3 WHERE id = $1
       RETURNING ${NOW_MS} AS now_ms`,
      [id, leaseMs, JSON.stringify(this.statusOf())],
    );
    if (id !== this.#id || this.#lost !== undefined) return;
    if (rowCount !== 1) {
      this.#lose();
      return;
    }
    this.#renewed(startedUs, rows);
    await onRenewed();
  }

  #lose(): LeaseLostError {
    const known = this.#lost;
    if (known !== undefined) return known;
    this.#stop();
    const error = new LeaseLostError(this.#options.leaseMs);
    this.#lost = error;
    this.#options.onLost(error);
    return error;
  }

  #stop(): void {
    this.#renewal?.cancel();
    this.#expiry?.cancel();
  }
}
