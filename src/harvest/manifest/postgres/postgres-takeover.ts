import { StoreError } from "../../../errors.ts";
import { type PartialDownload, partOfRow } from "../manifest-files.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import { SESSION_ENDED } from "./postgres-sessions.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

/** Completes or deletes the partial files of works whose process died. */
export type RecoverParts = (parts: readonly PartialDownload[]) => Promise<void>;

interface TakenWorks {
  readonly works: readonly number[];
  /**
   * The ids of the dead workers in the store of the limits. Not of one whose lease has ended while it has its session: it
   * may be suspended, and send its requests later.
   */
  readonly storeIds: readonly string[];
}

/**
 * SQL: the workers that are dead, for this worker (`$1`), the length of a lease (`$2`) and suspects (`$3`). While the
 * server was down, no lease could be renewed. So no lease counts as ended until the server has been up for the length of
 * a lease.
 */
const DEAD = `id <> $1 AND (lease_until_ms < ${NOW_MS}
    AND extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 > $2::bigint
  OR id = ANY($3) AND ${SESSION_ENDED})`;
/** How long the server waits for each connection of a dead worker to end. The lease is not renewed meanwhile. */
const END_MS = 200;

/** Takes over the works of workers whose lease or session has ended. */
export class PostgresTakeover {
  readonly #connection: PostgresConnection;
  readonly #leaseConnection: PostgresConnection;
  readonly #worker: PostgresWorker;
  readonly #leaseMs: number;
  #recover: RecoverParts = async () => undefined;

  /** @param leaseConnection takes the works: operations may wait for the locks of a dead worker on all others */
  constructor(
    connection: PostgresConnection,
    leaseConnection: PostgresConnection,
    worker: PostgresWorker,
    leaseMs: number,
  ) {
    this.#connection = connection;
    this.#leaseConnection = leaseConnection;
    this.#worker = worker;
    this.#leaseMs = leaseMs;
  }

  /** Sets how files are recovered, and takes over the works of workers that are dead now. */
  async begin(recover: RecoverParts): Promise<void> {
    this.#recover = recover;
    // The incomplete files of works that are done or merged: no work resumes them.
    await this.#connection.write(
      `DELETE FROM parts USING works WHERE works.id = parts.work AND works.state = 'done' AND parts.shelving IS NULL`,
      [],
    );
    if (!(await this.takeOver())) await recover([]);
  }

  /**
   * Takes over the works of dead workers. The works belong to this worker until their files are recovered, and are then
   * given back. If this worker dies in between, another worker takes over from it. True if a worker had died, with or
   * without works: it may have left files.
   * @param suspects workers that are dead if their session has ended. Any worker is dead if its lease has ended
   */
  async takeOver(suspects: readonly number[] = []): Promise<boolean> {
    const taken = await this.#takeWorks(suspects).catch(error => {
      // The server is away or busy. This worker goes on, and the next takeover finds the same workers.
      if (error instanceof StoreError) return undefined;
      throw error;
    });
    if (taken === undefined) return false;
    const { works, storeIds } = taken;
    // At once: the files may take longer to recover, and requests of all workers may wait for these leases.
    if (storeIds.length > 0) await this.#worker.announce(storeIds);
    const rows = await this.#connection.read(
      "SELECT place, work, file, etag, total_bytes, shelving FROM parts WHERE work = ANY($1)",
      [works],
    );
    await this.#recover(rows.map(partOfRow));
    await this.#connection.write("UPDATE works SET taken_by = NULL WHERE id = ANY($1) AND taken_by = $2", [
      works,
      this.#worker.id,
    ]);
    await this.#worker.announce();
    return true;
  }

  /**
   * Takes the works of dead workers and removes these workers. Undefined if no worker has died. A work that is still
   * locked is left to the next takeover, with its worker.
   */
  async #takeWorks(suspects: readonly number[]): Promise<TakenWorks | undefined> {
    const me = this.#worker.id;
    await this.#endConnections(suspects);
    return this.#leaseConnection.transaction(async client => {
      const dead = await client.query(
        `SELECT id, CASE WHEN id = ANY($3) AND ${SESSION_ENDED} THEN store_id END AS store_id
         FROM workers WHERE ${DEAD} ORDER BY id FOR UPDATE SKIP LOCKED`,
        [me, this.#leaseMs, suspects],
      );
      if (dead.rows.length === 0) return undefined;
      const ids = dead.rows.map(({ id }) => Number(id));
      const { rows } = await client.query(
        `WITH held AS (SELECT id FROM works WHERE taken_by = ANY($2) ORDER BY id FOR UPDATE SKIP LOCKED)
         UPDATE works SET taken_by = $1 FROM held WHERE works.id = held.id RETURNING works.id`,
        [me, ids],
      );
      await client.query(
        "DELETE FROM workers WHERE id = ANY($1) AND NOT EXISTS (SELECT 1 FROM works WHERE taken_by = workers.id)",
        [ids],
      );
      return {
        works: rows.map(({ id }) => Number(id)),
        storeIds: dead.rows.flatMap(({ store_id: storeId }) => (storeId === null ? [] : [String(storeId)])),
      };
    });
  }

  /**
   * Ends the connections of dead workers, with their transactions. If a machine is lost or suspended while it sends
   * statements, the server waits for the rest, and keeps the locks until then. It counts as active meanwhile, so no
   * timeout of idle transactions ends it. Connections of another role cannot be ended by this one.
   */
  async #endConnections(suspects: readonly number[]): Promise<void> {
    const workers = await this.#leaseConnection.read(`SELECT id FROM workers WHERE ${DEAD}`, [
      ...[this.#worker.id, this.#leaseMs, suspects],
    ]);
    if (workers.length === 0) return;
    await this.#leaseConnection.read(
      `SELECT pg_terminate_backend(pid, ${END_MS}) FROM pg_stat_activity
       WHERE application_name = ANY($1) AND datname = current_database() AND pg_has_role(usesysid, 'USAGE')`,
      [workers.map(({ id }) => this.#leaseConnection.applicationOf(Number(id)))],
    );
  }
}
