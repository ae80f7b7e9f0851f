import type { Blocker } from "../breaker/breaker-change.ts";
import type { Denial } from "../breaker/denial.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { Time, Timer } from "../time/time.ts";

/** The requests of one key that wait for an open circuit or a cooldown. */
export interface BlockedKey {
  /** The budget that one of them had when it began to wait. */
  readonly roleBudget: RoleBudget;
  readonly waiting: number;
}

/** The name of a key in `waitingByKey`. */
export function keyOf({ name, role }: RoleBudget): string {
  return `${role} ${name}`;
}

interface WaitList {
  readonly waiters: Set<Waiter>;
  timer: Timer | undefined;
  /** When the timer fires, in monotonic microseconds. */
  dueUs: number;
}

/**
 * Requests that wait for an open circuit or a cooldown. They do not block other hosts of the same role budget. When the
 * blocker ends, `takeUnblocked` returns them, to be queued for their budgets again.
 */
export class BreakerQueue {
  readonly #time: Time;
  /** Called when the known end of a blocker has come. */
  readonly #wake: () => void;
  readonly #lists = new Map<Blocker, WaitList>();
  readonly #blockerOf = new Map<Waiter, Blocker>();
  readonly #unblocked = new Set<Blocker>();

  constructor(time: Time, wake: () => void) {
    this.#time = time;
    this.#wake = wake;
  }

  get waiting(): number {
    return this.#blockerOf.size;
  }

  /** The requests that wait, by the key that they will use: its budget may be evicted meanwhile. */
  waitingByKey(): ReadonlyMap<string, BlockedKey> {
    const byKey = new Map<string, { readonly roleBudget: RoleBudget; waiting: number }>();
    for (const { roleBudget } of this.#blockerOf.keys()) {
      const blocked = byKey.get(keyOf(roleBudget)) ?? { roleBudget, waiting: 0 };
      blocked.waiting += 1;
      byKey.set(keyOf(roleBudget), blocked);
    }
    return byKey;
  }

  /** The circuits and cooldowns that requests wait for. */
  blockers(): IterableIterator<Blocker> {
    return this.#lists.keys();
  }

  has(waiter: Waiter): boolean {
    return this.#blockerOf.has(waiter);
  }

  waiters(): IterableIterator<Waiter> {
    return this.#blockerOf.keys();
  }

  add(waiter: Waiter, { blocker, untilUs, isRampUp, constraint }: Denial): void {
    const list = this.#lists.get(blocker) ?? { waiters: new Set(), timer: undefined, dueUs: Number.POSITIVE_INFINITY };
    this.#lists.set(blocker, list);
    list.waiters.add(waiter);
    waiter.block(this.#time.monotonicUs(), constraint, isRampUp);
    this.#blockerOf.set(waiter, blocker);
    // A host has several ends: those of its cooldown, and of the hold of each role. The first one wakes all requests.
    if (list.timer !== undefined && list.dueUs <= untilUs) return;
    list.timer?.cancel();
    list.timer = this.#arm(blocker, untilUs);
    list.dueUs = untilUs;
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

  /** A circuit or cooldown may admit calls again, or its end has moved. */
  unblock(blocker: Blocker): void {
    if (this.#lists.has(blocker)) this.#unblocked.add(blocker);
  }

  /**
   * Removes and returns the requests of all blockers that have ended. A request that is denied again, because the timer
   * was early or a probe is in flight, returns here with a new end, so no request waits without a timer.
   */
  takeUnblocked(): readonly Waiter[] {
    if (this.#unblocked.size === 0) return [];
    const waiters = [...this.#unblocked].flatMap(blocker => [...(this.#lists.get(blocker)?.waiters ?? [])]);
    this.#unblocked.clear();
    for (const waiter of waiters) this.take(waiter);
    return waiters;
  }

  /** Removes one request whose blocker has ended for it. */
  take(waiter: Waiter): void {
    this.leave(waiter);
    waiter.unblock(this.#time.monotonicUs());
  }

  #arm(blocker: Blocker, untilUs: number): Timer {
    return this.#time.setTimer((untilUs - this.#time.monotonicUs()) / 1000, () => {
      this.unblock(blocker);
      this.#wake();
    });
  }
}
