import type { Constraint } from "../errors.ts";
import type { Timer } from "../time/time.ts";
import type { Charge } from "./charge.ts";
import { type EntryRequest, leftOfBoundMs } from "./entry-request.ts";
import type { Grant } from "./grant.ts";
import type { RoleBudget } from "./role-budget.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Parking, SchedulerNode } from "./scheduler-node.ts";

/** Timers fire late: a request that is due at the end of its bound is still granted this much later. */
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
  /** The bound of the call in ms, from its first arrival. */
  readonly boundMs: number;
  /** When the bound ends, without the time in which slots were missing. */
  readonly #boundUs: number;
  /** When it was expected to start at the last judgement; undefined before the first. Not a reservation (law L2). */
  estimatedUs: number | undefined = undefined;
  hasLeft = false;
  /** When the circuit or cooldown that blocked it ended; 0 if none did. */
  blockedUntilUs = 0;
  /** Since when a circuit or cooldown blocks it; undefined while none does. */
  #blockedSinceUs: number | undefined = undefined;
  #isBlockedLikeSlot = false;
  /** How long circuits and cooldowns have blocked it before. */
  #blockedUs = 0;
  /** The circuit or cooldown that blocks it, or has last blocked it. */
  #blockedBy: Constraint | undefined = undefined;
  /** The circuit or cooldown that has blocked it longest. */
  #longestBlock: Constraint | undefined = undefined;
  #longestBlockUs = 0;
  /** Number of the last request to the store that includes it. Later ones do not extend its wait. */
  lastStoreRequest = 0;
  /** The store is asked for leases or records that the request needs: the reply decides, even if the bound ends before. */
  isStoreAsked = false;
  /** Where it waits. Limits that change meanwhile may lead new requests of this kind elsewhere. */
  scheduler: Scheduler | undefined = undefined;
  /** Fires at its bound. */
  timer: Timer | undefined = undefined;
  /** Stops watching the signal of the call. */
  stopWatching: (() => void) | undefined = undefined;
  /** Its place in the scheduler, while it is queued there. */
  #node: SchedulerNode | undefined = undefined;
  #joinedUs = 0;
  #slotWaitBaseUs = 0;
  #slotWaitUs = 0;
  /** The slot and the rate that it waited for last. */
  #slotParking: Parking | undefined = undefined;
  #timeParking: Parking | undefined = undefined;
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
    this.#boundUs = arrivedUs + leftOfBoundMs(call, boundMs) * 1000;
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

  /** False if it waits as long as it takes: then it is never late. */
  get isBounded(): boolean {
    return this.boundMs < Number.POSITIVE_INFINITY;
  }

  /** Whether the call has a bound of its own, not that of the policy. */
  get hasOwnBound(): boolean {
    return this.call.maxWaitMs !== undefined;
  }

  /**
   * The latest start that its bound permits. `max_delay_ms` bounds only the wait for rates: the time in which a slot or
   * a reply of the store was missing does not count (law L4).
   */
  latestUs(nowUs: number): number {
    return this.hasOwnBound ? this.#boundUs : this.#boundUs + this.#slotWaitUs + this.#slotWaitAtNodeUs(nowUs);
  }

  joined(node: SchedulerNode, nowUs: number): void {
    this.#node = node;
    this.#joinedUs = nowUs;
    this.#slotWaitBaseUs = node.slotWaitUs(nowUs);
  }

  leftQueue(nowUs: number): void {
    this.#slotWaitUs += this.#slotWaitAtNodeUs(nowUs);
    for (let at = this.#node; at !== undefined; at = at.above)
      this.#slotParking = later(this.#slotParking, at.slotParking, this.#joinedUs);
    this.#timeParking = this.#lastTimeParking();
    this.#node = undefined;
  }

  /** When the last rate that it waited for had capacity; Infinity while it waits for one, 0 if it waited for none. */
  get rateReadyUs(): number {
    return this.#lastTimeParking()?.untilUs ?? 0;
  }

  #lastTimeParking(): Parking | undefined {
    let last = this.#timeParking;
    for (let at = this.#node; at !== undefined; at = at.above) last = later(last, at.timeParking, this.#joinedUs);
    return last;
  }

  /**
   * The limit or circuit that the longest part of its wait was spent on; undefined if none delayed it. Of several rates
   * or slots, the one that it waited for last.
   */
  waitedFor(nowUs: number, slotWaitMs: number): Constraint | undefined {
    const breakerWaitMs = this.breakerWaitMs(nowUs);
    const rateMs = this.waitedMs(nowUs) - slotWaitMs - breakerWaitMs;
    const [slot, rate] = [this.#slotParking?.limit, this.#timeParking?.limit];
    if (this.#longestBlock !== undefined && breakerWaitMs >= Math.max(slotWaitMs, rateMs)) return this.#longestBlock;
    return (slotWaitMs > rateMs ? (slot ?? rate) : (rate ?? slot)) ?? this.#longestBlock;
  }

  #slotWaitAtNodeUs(nowUs: number): number {
    return this.#node === undefined ? 0 : this.#node.slotWaitUs(nowUs) - this.#slotWaitBaseUs;
  }

  /** The end of its own bound, for any reason to wait. Without one it waits for slots as long as it takes. */
  get ownBoundUs(): number {
    return this.hasOwnBound ? this.#boundUs : Number.POSITIVE_INFINITY;
  }

  waitedMs(nowUs: number): number {
    return (nowUs - this.arrivedUs) / 1000;
  }

  /** Whether a circuit or cooldown blocks it, or blocked it when it left the queue without a grant. */
  get isBlocked(): boolean {
    return this.#blockedSinceUs !== undefined;
  }

  /** The part of `waitedMs` in which a circuit or cooldown blocked it. */
  breakerWaitMs(nowUs: number): number {
    return (this.#blockedUs + nowUs - (this.#blockedSinceUs ?? nowUs)) / 1000;
  }

  /**
   * The circuit or cooldown `by` blocks it from now on. `isLikeSlot`: it waits for the answer of another call, which
   * `max_delay_ms` does not bound (law L4).
   */
  block(nowUs: number, by: Constraint, isLikeSlot = false): void {
    this.#blockedSinceUs ??= nowUs;
    this.#blockedBy = by;
    this.#isBlockedLikeSlot = isLikeSlot;
  }

  unblock(nowUs: number): void {
    const blockedUs = nowUs - (this.#blockedSinceUs ?? nowUs);
    this.#blockedUs += blockedUs;
    if (blockedUs > this.#longestBlockUs) {
      this.#longestBlockUs = blockedUs;
      this.#longestBlock = this.#blockedBy;
    }
    if (this.#isBlockedLikeSlot) this.#slotWaitUs += blockedUs;
    this.#blockedSinceUs = undefined;
  }

  /** Whether its own bound is over, by more than timers are late, and no reply of the store is awaited. */
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

/** The parking that ended last, of those that ended after `sinceUs`. */
function later(known: Parking | undefined, other: Parking | undefined, sinceUs: number): Parking | undefined {
  if (other === undefined || other.untilUs <= sinceUs) return known;
  return known === undefined || other.untilUs > known.untilUs ? other : known;
}
