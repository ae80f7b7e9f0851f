import type { Budget } from "../limiter/budget.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { LeaseReply } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";

/** A store that takes longer to answer is slow. A faster one is asked only when units are needed. */
const SLOW_US = 5000;
/**
 * If a reply takes longer, the store or this process is overloaded. Leasing further ahead would only take units from the
 * other processes.
 */
const MAX_ROUND_TRIP_US = 500_000;
/**
 * The only user of a key leases the units of this many round trips: one for the reply, one for the report, one in
 * reserve.
 */
const ROUND_TRIPS_AHEAD = 3;
/**
 * An announced wait is often exceeded a little. A unit that becomes free up to 1/20 of the announced wait later (at most
 * 1 s) is leased ahead, so that the process need not ask again.
 */
const DRIFT_PARTS = 20;
const MAX_DRIFT_MS = 1000;

interface KeyPace {
  /** No other process uses the budgets: more units may be requested at any time. */
  isOnlyUser: boolean;
  /** What the store has last announced, in milliseconds. */
  waitMs: number;
  /** The longest wait that the store has announced since it last granted units, in milliseconds. */
  longestMs: number;
  timer: Timer | undefined;
}

/** When a process asks the store for units, and how far ahead, by the time that the store takes to answer. */
export class RequestPace {
  readonly #time: Time;
  readonly #keys = new WeakMap<RoleBudget, KeyPace>();
  readonly #timers = new Set<Timer>();
  #roundTripUs = 0;

  constructor(time: Time) {
    this.#time = time;
  }

  /** An exchange took this long. */
  replied(tookUs: number): void {
    const boundedUs = Math.min(MAX_ROUND_TRIP_US, tookUs);
    this.#roundTripUs = this.#roundTripUs === 0 ? boundedUs : (7 * this.#roundTripUs + boundedUs) / 8;
  }

  /** Adjusts the pace of a key to a reply of the store. */
  adjust(roleBudget: RoleBudget, reply: LeaseReply): void {
    const isOnlyUser = reply.kind === "granted" && reply.isOnlyUser === true;
    const waitMs = reply.kind === "wait" ? reply.waitMs : (reply.nextMs ?? 0);
    const longestMs = reply.kind === "wait" ? Math.max(waitMs, this.#keys.get(roleBudget)?.longestMs ?? 0) : waitMs;
    if (waitMs > 0 || this.isStoreSlow) this.#keys.set(roleBudget, { isOnlyUser, waitMs, longestMs, timer: undefined });
    else this.#keys.delete(roleBudget);
  }

  /** The process asks now: a timer that would ask is not needed. */
  asking(roleBudget: RoleBudget): void {
    const timer = this.#keys.get(roleBudget)?.timer;
    timer?.cancel();
    if (timer !== undefined) this.#timers.delete(timer);
  }

  /** How far ahead units are leased: those that become free within this time, in milliseconds. */
  aheadMs(roleBudget: RoleBudget): number {
    const longestMs = this.#keys.get(roleBudget)?.longestMs ?? 0;
    const driftMs = Math.min(MAX_DRIFT_MS, longestMs / DRIFT_PARTS);
    return Math.round(Math.max(driftMs, (ROUND_TRIPS_AHEAD * this.#roundTripUs) / 1000));
  }

  /** Whether the only user of a key, whose store is slow, would run out of units during a round trip. */
  isRunningLow(roleBudget: RoleBudget): boolean {
    if (!this.isStoreSlow || this.#keys.get(roleBudget)?.isOnlyUser !== true) return false;
    const unused = roleBudget.unitLease?.unusedUnits ?? 0;
    let neededUnits = Number.POSITIVE_INFINITY;
    for (let at: Budget | undefined = roleBudget; at; at = at.above)
      for (const { limit, spanUs } of at.windows)
        neededUnits = Math.min(neededUnits, Math.ceil((limit * this.#roundTripUs) / spanUs));
    return unused < neededUnits;
  }

  /** Calls `ask` one round trip before the next units are expected, if the store is slow. */
  askAhead(roleBudget: RoleBudget, ask: () => void): void {
    const pace = this.#keys.get(roleBudget);
    if (pace === undefined || pace.isOnlyUser || !this.isStoreSlow) return;
    const ms = pace.waitMs - this.#roundTripUs / 1000;
    if (ms <= 0) return;
    const timer = setUnreferencedTimer(this.#time, ms, () => {
      this.#timers.delete(timer);
      ask();
    });
    this.#timers.add(timer);
    pace.timer = timer;
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  /** Whether the store takes so long to answer that it must be asked ahead. */
  get isStoreSlow(): boolean {
    return this.#roundTripUs > SLOW_US;
  }
}
