import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { Time, Timer } from "../time/time.ts";

type Blocker = Denial["blocker"];

interface WaitList {
  readonly waiters: Set<Waiter>;
  timer: Timer | undefined;
}

/**
 * Requests that wait for an open circuit or a cooldown. They do not block other hosts of the same role budget. When the
 * blocker ends, they join the end of their queue again.
 */
export class BreakerQueue {
  readonly #time: Time;
  readonly #rejoin: (waiter: Waiter) => void;
  readonly #lists = new Map<Blocker, WaitList>();
  readonly #blockerOf = new Map<Waiter, Blocker>();

  constructor(breakers: Breakers, time: Time, rejoin: (waiter: Waiter) => void) {
    this.#time = time;
    this.#rejoin = rejoin;
    breakers.onUnblocked(blocker => this.#releaseAll(blocker));
  }

  get waiting(): number {
    return this.#blockerOf.size;
  }

  /** The circuits and cooldowns that requests wait for. */
  blockers(): IterableIterator<Blocker> {
    return this.#lists.keys();
  }

  has(waiter: Waiter): boolean {
    return this.#blockerOf.has(waiter);
  }

  add(waiter: Waiter, { blocker, untilUs }: Denial): void {
    const list = this.#lists.get(blocker) ?? { waiters: new Set(), timer: undefined };
    this.#lists.set(blocker, list);
    list.waiters.add(waiter);
    this.#blockerOf.set(waiter, blocker);
    list.timer ??= this.#arm(blocker, untilUs);
  }

  leave(waiter: Waiter): void {
    const blocker = this.#blockerOf.get(waiter);
    const list = blocker && this.#lists.get(blocker);
    if (blocker === undefined || list === undefined) return;
    this.#blockerOf.delete(waiter);
    list.waiters.delete(waiter);
    if (list.waiters.size > 0) return;
    list.timer?.cancel();
    this.#lists.delete(blocker);
  }

  #arm(blocker: Blocker, untilUs: number): Timer {
    return this.#time.setTimer((untilUs - this.#time.monotonicUs()) / 1000, () => this.#releaseAll(blocker));
  }

  /**
   * Moves all requests of a blocker back to their queues. A request that is denied again, because the timer was early
   * or a probe is in flight, returns here with a new end, so no request waits without a timer.
   */
  #releaseAll(blocker: Blocker): void {
    const list = this.#lists.get(blocker);
    if (list === undefined) return;
    const leaving = [...list.waiters];
    for (const waiter of leaving) this.leave(waiter);
    for (const waiter of leaving) this.#rejoin(waiter);
  }
}
