import type { Settlement } from "../store.ts";
import type { SqliteTables } from "./sqlite-connection.ts";

/** One call that is to run in a transaction. */
export interface QueuedTransaction {
  /** Applied before the first `run` of the transaction, for all its calls together. */
  readonly settlements: readonly Settlement[];
  readonly run: (tables: SqliteTables) => unknown;
  /** The amount of work: the settlements, requests and reports of an exchange; 1 for any other call. */
  readonly size: number;
  /** Skips the pause that leaves the file to other processes. */
  readonly isUrgent: boolean;
  /** How long the call waits while the file is locked. */
  readonly timeoutMs: number;
  /** If the file is still locked at this time, the call is rejected. */
  readonly deadlineUs: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The largest size of a transaction, so that a long queue does not stall the event loop. One call may be larger. */
const BATCH_SIZE_MAX = 64;

/** Calls in order of arrival. */
export class TransactionQueue {
  #calls: QueuedTransaction[] = [];

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  get isUrgent(): boolean {
    return this.#calls.some(({ isUrgent }) => isUrgent);
  }

  push(call: QueuedTransaction): void {
    this.#calls.push(call);
  }

  /** The calls of the next transaction. They stay queued until `remove`. */
  batch(): readonly QueuedTransaction[] {
    let sum = 0;
    const end = this.#calls.findIndex(({ size }, index) => {
      sum += size;
      return index > 0 && sum > BATCH_SIZE_MAX;
    });
    return end < 0 ? [...this.#calls] : this.#calls.slice(0, end);
  }

  /** Removes a batch that has succeeded or failed. */
  remove(batch: readonly QueuedTransaction[]): void {
    this.#calls = this.#calls.slice(batch.length);
  }

  /** Removes and returns the calls whose deadline has passed. */
  removeOverdue(nowUs: number): readonly QueuedTransaction[] {
    const overdue = this.#calls.filter(({ deadlineUs }) => deadlineUs <= nowUs);
    this.#calls = this.#calls.filter(({ deadlineUs }) => deadlineUs > nowUs);
    return overdue;
  }
}
