import type { Waiter } from "./waiter.ts";

/** Late timers make estimates drift. They are computed again once they are off by more than this. */
export const DRIFT_US = 5000;

/**
 * First in, first out. A request that leaves early is only marked, and dropped when the head reaches it: 10,000 aborts
 * at once cost one pass over the queue instead of 10,000.
 */
export class WaitQueue {
  #waiters: Waiter[] = [];
  #head = 0;
  #unitsServed = 0;
  #unitsJoined = 0;
  /** Requests still queued. */
  length = 0;
  /** Sum of their units. */
  units = 0;
  /** The estimates no longer hold: a request left, or the pace changed. */
  isStale = false;
  /** `Scheduler.epoch` when the estimates were made. */
  epoch = 0;

  get first(): Waiter | undefined {
    while (this.#waiters[this.#head]?.hasLeft) this.#drop();
    return this.#waiters[this.#head];
  }

  get last(): Waiter | undefined {
    return this.length === 0 ? undefined : this.#waiters.findLast(waiter => !waiter.hasLeft);
  }

  join(waiter: Waiter): void {
    waiter.hasLeft = false;
    this.#unitsJoined += waiter.units;
    waiter.lastUnit = this.#unitsJoined;
    this.#waiters.push(waiter);
    this.length += 1;
    this.units += waiter.units;
  }

  /** Removes the first request, which is about to be granted. */
  serve(nowUs: number): void {
    const waiter = this.first;
    if (waiter === undefined) return;
    this.#drop();
    waiter.hasLeft = true;
    this.#unitsServed += waiter.units;
    this.length -= 1;
    this.units -= waiter.units;
    if (nowUs - waiter.estimatedUs > DRIFT_US) this.isStale = true;
  }

  leave(waiter: Waiter): void {
    waiter.hasLeft = true;
    this.length -= 1;
    this.units -= waiter.units;
    this.isStale = true;
  }

  /** Units queued before a request; 0 while the sequence numbers are stale. */
  unitsBefore(waiter: Waiter): number {
    return this.isStale ? 0 : waiter.lastUnit - waiter.units - this.#unitsServed;
  }

  /** In queue order. */
  all(): readonly Waiter[] {
    return this.#waiters.slice(this.#head).filter(waiter => !waiter.hasLeft);
  }

  /** Empties the queue; returns the requests in queue order. */
  drain(): readonly Waiter[] {
    const waiters = this.all();
    this.#waiters = [];
    this.#head = 0;
    this.#unitsServed = 0;
    this.#unitsJoined = 0;
    this.length = 0;
    this.units = 0;
    return waiters;
  }

  /** When the n-th queued unit is expected to start. */
  estimatedUs(unit: number): number {
    const wanted = this.#unitsServed + unit;
    let low = this.#head;
    let high = this.#waiters.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#waiters[middle] as Waiter).lastUnit < wanted) low = middle + 1;
      else high = middle;
    }
    return this.#waiters[low]?.estimatedUs ?? 0;
  }

  /**
   * Estimates every request again, in queue order: `estimate` sees only the requests before the one that it is given.
   */
  reestimate(estimate: (waiter: Waiter) => number): void {
    const waiters = this.drain();
    this.isStale = false;
    for (const waiter of waiters) {
      waiter.estimatedUs = estimate(waiter);
      this.join(waiter);
    }
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
