import { type Row, textOf } from "./manifest-row.ts";
import { type ListedWork, workOfRow } from "./manifest-works.ts";

/** Works that wait in the manifest for one host queue. */
export interface WaitingWorks {
  readonly queue: string;
  readonly works: number;
  /** When the first of these works may start, by `ManifestQueue.nowMs`; 0 for at once. */
  readonly notBeforeMs: number;
}

/** A work that a run has taken, with the progress of an earlier attempt. */
export interface TakenWork {
  readonly work: ListedWork;
  /** Made by `Resolution`; undefined if the work starts from the beginning. */
  readonly progress: string | undefined;
  /**
   * The progress of each work that was merged into this one. An empty text stands for a merge without progress, or for
   * a list that has added identifiers.
   */
  readonly inherited: readonly string[];
  /** The queue in which it waited. */
  readonly queue: string;
  /** Why it was put off; undefined if it only waited for its turn. */
  readonly message: string | undefined;
}

export interface PutOff {
  readonly queue: string;
  /** By `ManifestQueue.nowMs`; 0 for at once. */
  readonly notBeforeMs: number;
  readonly progress: string | undefined;
  /** Why the work waits. */
  readonly message?: string | undefined;
  /** As in `Manifest.fail`. @default all */
  readonly inherited?: number | undefined;
}

/**
 * How many works a process has beyond what `ManifestQueue.take` lets it have, when it asks for downloads or for queries.
 * All works count for both, because the step of a work changes while the process has it.
 */
export interface Surplus {
  readonly downloads: number;
  readonly queries: number;
}

/**
 * The works that wait, by the queue of their next step. One process at a time takes a work. A work that cannot continue
 * is put off until a time, and leaves the memory of the process.
 */
export interface ManifestQueue {
  /**
   * The time by which works wait, in epoch milliseconds. It is not set back with the wall clock, and workers on several
   * machines agree on it.
   */
  nowMs(): number;
  waiting(run: number): Promise<readonly WaitingWorks[]>;
  /** Like `waiting`, for one queue. */
  waitingIn(run: number, queue: string): Promise<Omit<WaitingWorks, "queue">>;
  /**
   * Takes works that may start now, in the order of the list. If few works are left for each worker, this one gets at
   * most its share.
   */
  take(run: number, queue: string, nowMs: number, limit: number): Promise<readonly TakenWork[]>;
  /**
   * Takes works that may start only after `afterMs`, and the works of some queues, whenever they may start. Other works
   * are left, also those that another process has just given back.
   */
  takeLater(run: number, afterMs: number, queues: readonly string[], limit: number): Promise<readonly TakenWork[]>;
  /** Lets the works of the queues that wait for a limit or a circuit start at once: these that have a `message`. */
  endWaits(run: number, queues: readonly string[]): Promise<void>;
  /** Undefined if the work is put off. If the manifest has more in `inherited`, the work stays taken and is returned. */
  putOff(work: number, putOff: PutOff): Promise<TakenWork | undefined>;
  /** Above 0 for a short list, if another process has joined since this one has taken its works. */
  surplus(run: number): Promise<Surplus>;
  /** Notifies other processes of works that were put off. */
  announce(): Promise<void>;
  /** Whether no work of the run is pending, and no other process still adds works to it. */
  isFinished(run: number): Promise<boolean>;
}

/** The waiting works of a row with the columns `works` and `not_before_ms`. */
export function waitingOfRow(row: Row): Omit<WaitingWorks, "queue"> {
  return { works: Number(row["works"] ?? 0), notBeforeMs: Number(row["not_before_ms"] ?? 0) };
}

/** More texts than any work inherits. */
export const ALL_INHERITED = 1e9;

/** The columns of `works` that `takenOfRows` reads. */
export const TAKEN_COLUMNS = "id, key, ids, metadata, progress, inherited, queue, message";

/** In the order of the list: an UPDATE returns its rows in any order. */
export function takenOfRows(rows: readonly Row[]): readonly TakenWork[] {
  return rows.map(takenOfRow).sort((one, other) => one.work.id - other.work.id);
}

export function takenOfRow(row: Row): TakenWork {
  return {
    work: workOfRow(row),
    progress: textOf(row["progress"]),
    inherited: inheritedOfRow(row),
    queue: String(row["queue"]),
    message: textOf(row["message"]),
  };
}

/** `TakenWork.inherited` of a row with the column `inherited`. */
export function inheritedOfRow(row: Row): readonly string[] {
  return JSON.parse(textOf(row["inherited"]) ?? "[]") as readonly string[];
}
