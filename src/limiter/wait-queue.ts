import type { Waiter } from "./waiter.ts";

/**
 * First in, first out. A request that leaves early is only marked, and dropped when the head reaches it: 10,000 aborts
 * at once cost one pass over the queue instead of 10,000.
 */
export class WaitQueue {
  #waiters: Waiter[] = [];
  #head = 0;
  /** Requests still queued. */
  length = 0;
  /** Sum of their units. */
  units = 0;

  get first(): Waiter | undefined {
    while (this.#waiters[this.#head]?.hasLeft) this.#drop();
    return this.#waiters[this.#head];
  }

  join(waiter: Waiter): void {
    waiter.hasLeft = false;
    this.#waiters.push(waiter);
    this.length += 1;
    this.units += waiter.units;
  }

  /** Removes the first request, which is about to be granted. */
  serve(): void {
    const waiter = this.first;
    if (waiter === undefined) return;
    this.#drop();
    this.leave(waiter);
  }

  leave(waiter: Waiter): void {
    waiter.hasLeft = true;
    this.length -= 1;
    this.units -= waiter.units;
  }

  /** In queue order. */
  all(): readonly Waiter[] {
    return this.#waiters.slice(this.#head).filter(waiter => !waiter.hasLeft);
  }

  /** Whether the own bound of a request ends at this time or before it. */
  hasBoundBefore(untilUs: number): boolean {
    return this.all().some(({ ownBoundUs }) => ownBoundUs <= untilUs);
  }

  #drop(): void {
    this.#head += 1;
    // The served part of the array is dropped now and then, at an amortised cost of one move per request.
    if (this.#head > 64 && this.#head * 2 > this.#waiters.length) {
      this.#waiters = this.#waiters.slice(this.#head);
      this.#head = 0;
    }
  }
}
