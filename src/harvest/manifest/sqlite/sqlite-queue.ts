import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Time } from "../../../time/time.ts";
import {
  ALL_INHERITED,
  type ManifestQueue,
  type PutOff,
  type Surplus,
  TAKEN_COLUMNS,
  type TakenWork,
  takenOfRow,
  takenOfRows,
  type WaitingWorks,
  waitingOfRow,
} from "../manifest-queue.ts";
import { QueueClock } from "../queue-clock.ts";

/** SQL: the number of texts in `TakenWork.inherited`. */
export const INHERITED_COUNT = "json_array_length(coalesce(inherited, '[]'))";

/** A work is taken by the run whose id is in `taken_by`. */
export class SqliteQueue implements ManifestQueue {
  readonly #waiting: StatementSync;
  readonly #take: StatementSync;
  readonly #takeLater: StatementSync;
  readonly #endWaits: StatementSync;
  readonly #putOff: StatementSync;
  readonly #waitingIn: StatementSync;
  readonly #taken: StatementSync;
  readonly #clock: QueueClock;

  constructor(db: DatabaseSync, time: Time) {
    this.#clock = new QueueClock(time);
    const isWaiting = "run = ?1 AND state = 'pending' AND taken_by IS NULL";
    this.#waiting = db.prepare(
      `SELECT queue, count(*) AS works, min(not_before_ms) AS not_before_ms FROM works WHERE ${isWaiting} GROUP BY queue`,
    );
    this.#take = db.prepare(
      `UPDATE works SET taken_by = ?1 WHERE id IN (
         SELECT id FROM works WHERE ${isWaiting} AND queue = ?2 AND not_before_ms <= ?3
         ORDER BY not_before_ms, id LIMIT ?4)
       RETURNING ${TAKEN_COLUMNS}`,
    );
    this.#takeLater = db.prepare(
      `UPDATE works SET taken_by = ?1 WHERE id IN (
         SELECT id FROM works WHERE ${isWaiting}
           AND (not_before_ms > ?2 OR queue IN (SELECT value FROM json_each(?3))) LIMIT ?4)
       RETURNING ${TAKEN_COLUMNS}`,
    );
    this.#endWaits = db.prepare(
      `UPDATE works SET not_before_ms = 0 WHERE ${isWaiting} AND queue IN (SELECT value FROM json_each(?2))
         AND not_before_ms > 0 AND message IS NOT NULL`,
    );
    this.#putOff = db.prepare(
      `UPDATE works SET queue = ?, not_before_ms = ?, progress = ?, message = ?, taken_by = NULL
       WHERE id = ? AND ${INHERITED_COUNT} <= ?`,
    );
    this.#taken = db.prepare(`SELECT ${TAKEN_COLUMNS} FROM works WHERE id = ?`);
    this.#waitingIn = db.prepare(
      `SELECT min(not_before_ms) AS not_before_ms, count(*) AS works FROM works WHERE ${isWaiting} AND queue = ?2`,
    );
  }

  nowMs(): number {
    this.#clock.catchUp();
    return this.#clock.nowMs();
  }

  async waiting(run: number): Promise<readonly WaitingWorks[]> {
    return this.#waiting.all(run).map(row => ({ queue: String(row["queue"]), ...waitingOfRow(row) }));
  }

  async waitingIn(run: number, queue: string): Promise<Omit<WaitingWorks, "queue">> {
    return waitingOfRow(this.#waitingIn.get(run, queue) ?? {});
  }

  async take(run: number, queue: string, nowMs: number, limit: number): Promise<readonly TakenWork[]> {
    return takenOfRows(this.#take.all(run, queue, nowMs, limit));
  }

  async takeLater(
    run: number,
    afterMs: number,
    queues: readonly string[],
    limit: number,
  ): Promise<readonly TakenWork[]> {
    return takenOfRows(this.#takeLater.all(run, afterMs, JSON.stringify(queues), limit));
  }

  async endWaits(run: number, queues: readonly string[]): Promise<void> {
    this.#endWaits.run(run, JSON.stringify(queues));
  }

  async putOff(work: number, putOff: PutOff): Promise<TakenWork | undefined> {
    const { queue, notBeforeMs, progress = null, message = null, inherited = ALL_INHERITED } = putOff;
    const { changes } = this.#putOff.run(queue, Math.ceil(notBeforeMs), progress, message, work, inherited);
    return Number(changes) === 0 ? this.taken(work) : undefined;
  }

  /** One process at a time works on a file. */
  async surplus(): Promise<Surplus> {
    return { downloads: 0, queries: 0 };
  }

  async announce(): Promise<void> {
    return undefined;
  }

  /** A work that this run has taken. */
  taken(work: number): TakenWork {
    return takenOfRow(this.#taken.get(work) ?? {});
  }

  /** The caller knows all works that wait, because no other process uses the manifest. */
  async isFinished(): Promise<boolean> {
    return true;
  }
}
