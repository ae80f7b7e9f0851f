import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { ListedWork } from "./manifest.ts";
import { workOfRow } from "./manifest-works.ts";

/** Works that wait in the manifest for one host queue. */
export interface WaitingWorks {
  readonly queue: string;
  readonly works: number;
  /** When the first of them may start, in wall-clock milliseconds; 0 for at once. */
  readonly notBeforeMs: number;
}

/** A work that a run has taken, with what an earlier attempt has left. */
export interface TakenWork {
  readonly work: ListedWork;
  /** Made by `Resolution`; undefined if the work starts from the beginning. */
  readonly progress: string | undefined;
  /** Where it waited, and why; undefined if it only waited for its turn. */
  readonly queue: string;
  readonly message: string | undefined;
}

export interface PutOff {
  readonly queue: string;
  /** Wall-clock milliseconds; 0 for at once. */
  readonly notBeforeMs: number;
  readonly progress: string | undefined;
  /** Why the work waits. */
  readonly message?: string | undefined;
}

/**
 * The works that wait, by the queue of their next step. A work is taken by one run at a time; a work that cannot continue
 * is put off with a time, and nothing of it stays in memory.
 */
export class ManifestQueue {
  readonly #waiting: StatementSync;
  readonly #take: StatementSync;
  readonly #takeAny: StatementSync;
  readonly #putOff: StatementSync;
  readonly #notBefore: StatementSync;

  constructor(db: DatabaseSync) {
    const isWaiting = "run = ?1 AND state = 'pending' AND taken_by IS NULL";
    const columns = "id, key, ids, metadata, progress, queue, message";
    this.#waiting = db.prepare(
      `SELECT queue, count(*) AS works, min(not_before_ms) AS not_before_ms FROM works WHERE ${isWaiting} GROUP BY queue`,
    );
    this.#take = db.prepare(
      `UPDATE works SET taken_by = ?1 WHERE id IN (
         SELECT id FROM works WHERE ${isWaiting} AND queue = ?2 AND not_before_ms <= ?3
         ORDER BY not_before_ms, id LIMIT ?4)
       RETURNING ${columns}`,
    );
    this.#takeAny = db.prepare(
      `UPDATE works SET taken_by = ?1 WHERE id IN (SELECT id FROM works WHERE ${isWaiting} LIMIT ?2) RETURNING ${columns}`,
    );
    this.#putOff = db.prepare(
      "UPDATE works SET queue = ?, not_before_ms = ?, progress = ?, message = ?, taken_by = NULL WHERE id = ?",
    );
    this.#notBefore = db.prepare(
      `SELECT min(not_before_ms) AS not_before_ms, count(*) AS works FROM works WHERE ${isWaiting} AND queue = ?2`,
    );
  }

  waiting(run: number): readonly WaitingWorks[] {
    return this.#waiting.all(run).map(row => ({ queue: String(row["queue"]), ...countsOf(row) }));
  }

  /** How many works wait in one queue, and since when or until when. */
  waitingIn(run: number, queue: string): Omit<WaitingWorks, "queue"> {
    return countsOf(this.#notBefore.get(run, queue) ?? {});
  }

  /** Takes works that may start now, in the order of the list. */
  take(run: number, queue: string, nowMs: number, limit: number): readonly TakenWork[] {
    return takenOf(this.#take.all(run, queue, nowMs, limit));
  }

  /** Takes works of any queue, also those that may start only later. */
  takeAny(run: number, limit: number): readonly TakenWork[] {
    return takenOf(this.#takeAny.all(run, limit));
  }

  putOff(work: number, { queue, notBeforeMs, progress, message }: PutOff): void {
    this.#putOff.run(queue, Math.ceil(notBeforeMs), progress ?? null, message ?? null, work);
  }
}

function countsOf(row: Readonly<Record<string, unknown>>): Omit<WaitingWorks, "queue"> {
  return { works: Number(row["works"] ?? 0), notBeforeMs: Number(row["not_before_ms"] ?? 0) };
}

function takenOf(rows: readonly Readonly<Record<string, unknown>>[]): readonly TakenWork[] {
  return rows
    .map(row => ({
      work: workOfRow(row),
      progress: row["progress"] === null ? undefined : String(row["progress"]),
      queue: String(row["queue"]),
      message: row["message"] === null ? undefined : String(row["message"]),
    }))
    .sort((one, other) => one.work.id - other.work.id);
}
