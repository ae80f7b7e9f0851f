import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { Waiter } from "../limiter/wait-queue.ts";
import type { Time, Timer } from "../time/time.ts";

type Blocker = Denial["blocker"];

interface WaitList {
  readonly waiters: Set<Waiter>;
  timer: Timer | undefined;
}

/**
 * Where those wait whose host is cut off, if they may wait that long.
 * They stand in nobody's way: other hosts of the same lane go on. When the blocker may be passed again they go back
 * to the end of their line.
 */
export class BreakerQueue {
  readonly #time: Time;
  readonly #rejoin: (waiter: Waiter) => void;
  readonly #lists = new Map<Blocker, WaitList>();
  readonly #blockerOf = new Map<Waiter, Blocker>();

  constructor(breakers: BreakerRegistry, time: Time, rejoin: (waiter: Waiter) => void) {
    this.#time = time;
    this.#rejoin = rejoin;
    breakers.onUnblocked(blocker => this.#releaseAll(blocker));
  }

  get waiting(): number {
    return this.#blockerOf.size;
  }

  /** Whom somebody waits for. */
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
   * All go back to their lines at once. Whoever is not let through, because a timer was early or a half-open circuit
   * has its probe, is denied by something that will end, and comes back here: nobody is ever left waiting for nothing.
   */
  #releaseAll(blocker: Blocker): void {
    const list = this.#lists.get(blocker);
    if (list === undefined) return;
    const leaving = [...list.waiters];
    for (const waiter of leaving) this.leave(waiter);
    for (const waiter of leaving) this.#rejoin(waiter);
  }
}
