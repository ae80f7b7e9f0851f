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

/**
 * A process that has the next turn may have died, and then the unit stays unused. So the process behind it asks this long
 * after that turn was due. The store reserves a free unit for a shorter time (`TURN_US`).
 */
const TAKEOVER_MS = 25;
/** If units become free more often, the process behind need not ask: the unit that a dead process leaves is soon made up. */
const MIN_TAKEOVER_INTERVAL_MS = 200;
/** A process asks at most this often for the unit of another one, while it waits for one interval. */
const TAKEOVERS_PER_INTERVAL = 8;

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

  /**
   * Calls `ask` before the next units are expected: one round trip before, if the store is slow; and shortly after the
   * turn of the process before this one, which may have died.
   * @returns milliseconds until then; undefined if `ask` will not be called
   */
  askAhead(roleBudget: RoleBudget, ask: () => void): number | undefined {
    const pace = this.#keys.get(roleBudget);
    if (pace === undefined || pace.isOnlyUser) return undefined;
    const ms = takeoverMs(roleBudget, pace.waitMs) ?? (this.isStoreSlow ? pace.waitMs - this.#roundTripUs / 1000 : 0);
    if (ms <= 0) return undefined;
    const timer = setUnreferencedTimer(this.#time, ms, () => {
      this.#timers.delete(timer);
      ask();
    });
    this.#timers.add(timer);
    pace.timer = timer;
    return ms;
  }

  /** How long the units of one turn have to last: one round trip for the next ones, and one for the report of these. */
  get turnUs(): number {
    return 2 * this.#roundTripUs;
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

/**
 * When the turn of the process before this one is over; undefined if no other process is before this one. It is not known
 * which window decides, so the longest interval between units that is shorter than the wait is taken. If it was too long,
 * the process asks too early, and the next reply leads to the next shorter interval.
 */
function takeoverMs(roleBudget: RoleBudget, waitMs: number): number | undefined {
  let intervalMs = 0;
  for (let at: Budget | undefined = roleBudget; at; at = at.above)
    for (const { limit, spanUs } of at.windows) {
      const eachMs = spanUs / 1000 / limit;
      if (eachMs < waitMs) intervalMs = Math.max(intervalMs, eachMs);
    }
  if (intervalMs < MIN_TAKEOVER_INTERVAL_MS) return undefined;
  return Math.max(waitMs - intervalMs + TAKEOVER_MS, intervalMs / TAKEOVERS_PER_INTERVAL);
}
