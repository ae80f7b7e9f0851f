import type { Settlement } from "../store.ts";
import type { SqliteTables } from "./sqlite-connection.ts";

/** Something to be done in a transaction. */
export interface QueuedTransaction {
  /** Entered before anything is asked, of all calls of a transaction. */
  readonly settlements: readonly Settlement[];
  readonly run: (tables: SqliteTables) => unknown;
  /** How much there is to do, in settlements and asks. */
  readonly size: number;
  /** It does not wait until the others have had their time. */
  readonly isUrgent: boolean;
  /** Nobody waits longer for the lock. */
  readonly deadlineUs: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** One transaction does no more, so that catching up does not stall the event loop; one call may be larger. */
const BATCH_MAX = 64;

/** Calls in the order in which they came. */
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

  /** What the next transaction does. */
  batch(): readonly QueuedTransaction[] {
    let sum = 0;
    const end = this.#calls.findIndex(({ size }, index) => {
      sum += size;
      return index > 0 && sum > BATCH_MAX;
    });
    return end < 0 ? [...this.#calls] : this.#calls.slice(0, end);
  }

  /** A batch that was done, or has failed. */
  remove(batch: readonly QueuedTransaction[]): void {
    this.#calls = this.#calls.slice(batch.length);
  }

  /** Removes those who have waited too long. */
  removeOverdue(nowUs: number): readonly QueuedTransaction[] {
    const overdue = this.#calls.filter(({ deadlineUs }) => deadlineUs <= nowUs);
    this.#calls = this.#calls.filter(({ deadlineUs }) => deadlineUs > nowUs);
    return overdue;
  }
}
