import type { RoleBudget } from "./budget.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";

/** Somebody who waits at a lane. */
export interface Waiter {
  /** Another one after the limits were changed. */
  roleBudget: RoleBudget;
  /** Units of every window; 0 for a request that the windows do not count. */
  readonly units: number;
  /** When it is expected to go: a forecast for those who come after it, never a booking. */
  estimatedUs: number;
  /** The number, in the line's own counting, of its last unit. */
  lastUnit: number;
  hasLeft: boolean;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  /** Until when its host was cut off while it waited; 0 when it was not. */
  blockedUntilUs: number;
  /** Nobody keeps it waiting for a known end that lies beyond this. */
  readonly latestStartUs: number;
  /** Called once, when its turn has come and everything was taken. */
  readonly granted: (grant: Grant) => void;
  /** Called once, instead: it has left whatever line it was in. */
  readonly refused: (error: Error) => void;
}

/** Forecasts drift as timers come late; they are made anew once they are off by more than this. */
export const DRIFT_US = 5000;

/**
 * First in, first out. Whoever leaves early is marked and dropped in passing, so that ten thousand aborts at once
 * cost one pass and not ten thousand.
 */
export class WaitQueue {
  #waiters: Waiter[] = [];
  #head = 0;
  #unitsServed = 0;
  #unitsJoined = 0;
  /** Waiters still in line. */
  length = 0;
  /** Units they ask for together. */
  units = 0;
  /** Forecasts no longer hold: somebody left, or the pace changed. */
  isStale = false;
  /** The turnstile's count of changes when the forecasts were made. */
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

  /** The first one's turn has come. */
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

  /** Units of those ahead of somebody in line; 0 while the numbering is stale. */
  unitsBefore(waiter: Waiter): number {
    return this.isStale ? 0 : waiter.lastUnit - waiter.units - this.#unitsServed;
  }

  /** First to last. */
  all(): readonly Waiter[] {
    return this.#waiters.slice(this.#head).filter(waiter => !waiter.hasLeft);
  }

  /** Takes everybody out, first to last. */
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

  /** When the n-th waiting unit is expected to go. */
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

  /** Makes every forecast anew: takes all out, and lets `plan` put each back in behind the ones before it. */
  reestimate(plan: (waiter: Waiter) => number): void {
    const waiters = this.drain();
    this.isStale = false;
    for (const waiter of waiters) {
      waiter.estimatedUs = plan(waiter);
      this.join(waiter);
    }
  }

  #drop(): void {
    this.#head += 1;
    // What has been served is cut off now and then, at an amortised cost of one move each.
    if (this.#head > 64 && this.#head * 2 > this.#waiters.length) {
      this.#waiters = this.#waiters.slice(this.#head);
      this.#head = 0;
    }
  }
}
