import type { Timer } from "../time/time.ts";
import type { Charge } from "./charge.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";
import type { RoleBudget } from "./role-budget.ts";
import type { SchedulerNode } from "./scheduler-node.ts";

/** Timers are rarely exact: a request that is due at the end of its bound is granted this much later too. */
const LATE_TIMER_US = 1000;

export interface WaiterDetails {
  readonly roleBudget: RoleBudget;
  readonly charge: Charge;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  readonly boundMs: number;
}

/** A request that waits. It ends once, with its grant or with an error. */
export class Waiter {
  static #created = 0;
  /** Grows with each request: the order of arrival, also of requests that arrive at the same instant. */
  readonly number: number;
  /** Changes when the limits are reloaded. */
  roleBudget: RoleBudget;
  /** What it uses of its budgets. Changes when a reload changes the units that they count. */
  charge: Charge;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  /** The bound in ms that admission compared the estimate with. */
  readonly boundMs: number;
  /** When it is expected to start; 0 if unknown. Not a reservation (law L2). */
  estimatedUs = 0;
  hasLeft = false;
  /** When the circuit or cooldown that blocked it ended; 0 if none did. */
  blockedUntilUs = 0;
  /** Since when a circuit or cooldown blocks it; undefined while none does. */
  #blockedSinceUs: number | undefined = undefined;
  #isBlockedLikeSlot = false;
  /** How long circuits and cooldowns have blocked it before. */
  #blockedUs = 0;
  /** Number of the last request to the store that includes it. Later ones do not extend its wait. */
  lastStoreRequest = 0;
  /** The store is asked for what it needs: the reply decides, also if its bound ends meanwhile. */
  isStoreAsked = false;
  /** Fires at its bound. */
  timer: Timer | undefined = undefined;
  /** Stops watching the signal of the call. */
  stopWatching: (() => void) | undefined = undefined;
  /** Its place in the scheduler, while it is queued there. */
  #node: SchedulerNode | undefined = undefined;
  #slotWaitBaseUs = 0;
  #slotWaitUs = 0;
  readonly #outcome = Promise.withResolvers<Grant>();
  #isOver = false;

  constructor({ roleBudget, charge, call, arrivedUs, boundMs }: WaiterDetails) {
    Waiter.#created += 1;
    this.number = Waiter.#created;
    this.roleBudget = roleBudget;
    this.charge = charge;
    this.call = call;
    this.arrivedUs = arrivedUs;
    this.boundMs = boundMs;
  }

  /** Units that it uses of every rate; 0 for a request that the windows do not count. */
  get units(): number {
    return this.charge.units;
  }

  get promise(): Promise<Grant> {
    return this.#outcome.promise;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the call has a bound of its own, not that of the policy. */
  get hasOwnBound(): boolean {
    return this.call.maxWaitMs !== undefined;
  }

  /**
   * The latest start that its bound permits. `max_delay_ms` bounds the wait for rates, so that the time in which a slot
   * was missing, or a reply of the store, does not count (law L4).
   */
  latestUs(nowUs: number): number {
    const latestUs = this.arrivedUs + this.boundMs * 1000;
    return this.hasOwnBound ? latestUs : latestUs + this.#slotWaitUs + this.#slotWaitAtNodeUs(nowUs);
  }

  joined(node: SchedulerNode, nowUs: number): void {
    this.#node = node;
    this.#slotWaitBaseUs = node.slotWaitUs(nowUs);
  }

  leftQueue(nowUs: number): void {
    this.#slotWaitUs += this.#slotWaitAtNodeUs(nowUs);
    this.#node = undefined;
  }

  #slotWaitAtNodeUs(nowUs: number): number {
    return this.#node === undefined ? 0 : this.#node.slotWaitUs(nowUs) - this.#slotWaitBaseUs;
  }

  /** Its own bound, for any reason to wait. Without one it waits for slots as long as it takes. */
  get maxWaitMs(): number {
    return this.call.maxWaitMs ?? Number.POSITIVE_INFINITY;
  }

  waitedMs(nowUs: number): number {
    return (nowUs - this.arrivedUs) / 1000;
  }

  /** The part of `waitedMs` in which a circuit or cooldown blocked it. */
  blockedMs(nowUs: number): number {
    return (this.#blockedUs + nowUs - (this.#blockedSinceUs ?? nowUs)) / 1000;
  }

  /**
   * A circuit or cooldown blocks it from now on. `isLikeSlot`: it waits for the answer of another call, which
   * `max_delay_ms` does not bound (law L4).
   */
  block(nowUs: number, isLikeSlot = false): void {
    this.#blockedSinceUs ??= nowUs;
    this.#isBlockedLikeSlot = isLikeSlot;
  }

  unblock(nowUs: number): void {
    const blockedUs = nowUs - (this.#blockedSinceUs ?? nowUs);
    this.#blockedUs += blockedUs;
    if (this.#isBlockedLikeSlot) this.#slotWaitUs += blockedUs;
    this.#blockedSinceUs = undefined;
  }

  /** Whether its own bound is over, by more than timers are late, and no reply of the store is to decide. */
  isOverdue(nowUs: number): boolean {
    return this.hasOwnBound && !this.isStoreAsked && nowUs > this.latestUs(nowUs) + LATE_TIMER_US;
  }

  /** Stops its timer and stops watching its signal. False if it has ended before. */
  end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.timer?.cancel();
    this.stopWatching?.();
    return true;
  }

  granted(grant: Grant): void {
    this.end();
    this.#outcome.resolve(grant);
  }

  /** It must have left its queue before. */
  refused(reason: unknown): void {
    this.end();
    this.#outcome.reject(reason);
  }
}
