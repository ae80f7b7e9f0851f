import type { Answer, Ask, Settlement } from "./store.ts";

/** A call of `exchange` that waits for its turn. */
export interface WaitingCall {
  readonly settlements: readonly Settlement[];
  readonly asks: readonly Ask[];
  /** Nobody waits longer for the lock. */
  readonly deadlineUs: number;
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** One transaction does no more, so that catching up does not stall the event loop; one call may be larger. */
const BATCH_MAX = 64;

/** Calls in the order in which they came. */
export class ExchangeQueue {
  #calls: WaitingCall[] = [];

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  push(call: WaitingCall): void {
    this.#calls.push(call);
  }

  /** What the next transaction does. */
  batch(): readonly WaitingCall[] {
    let size = 0;
    const end = this.#calls.findIndex(({ settlements, asks }, index) => {
      size += settlements.length + asks.length;
      return index > 0 && size > BATCH_MAX;
    });
    return end < 0 ? [...this.#calls] : this.#calls.slice(0, end);
  }

  /** A batch that was done, or has failed. */
  remove(batch: readonly WaitingCall[]): void {
    this.#calls = this.#calls.slice(batch.length);
  }

  /** Removes those who have waited too long. */
  removeOverdue(nowUs: number): readonly WaitingCall[] {
    const overdue = this.#calls.filter(({ deadlineUs }) => deadlineUs <= nowUs);
    this.#calls = this.#calls.filter(({ deadlineUs }) => deadlineUs > nowUs);
    return overdue;
  }
}
