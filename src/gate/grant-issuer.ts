import type { Permit } from "../breaker/permit.ts";
import { type Budget, budgetsAbove } from "../limiter/budget.ts";
import type { Charge, Costs } from "../limiter/charge.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { Grant, type GrantOwner, type ServerFeedback } from "../limiter/grant.ts";
import type { GrantedWait } from "../limiter/granted-wait.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { Queues } from "../limiter/queues.ts";
import type { RequestBatch } from "../limiter/request-batch.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { RoleBudgets } from "../limiter/role-budgets.ts";
import type { Tuner } from "../limiter/tuner.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time } from "../time/time.ts";

/**
 * Charges grants to every budget that applies, and settles them with the same budgets. `wake` is called when slots are
 * free.
 */
export class GrantIssuer implements GrantOwner {
  readonly #roleBudgets: RoleBudgets;
  readonly #root: Budget;
  readonly #time: Time;
  readonly #emitter: LimiterEmitter;
  readonly #queues: Queues;
  readonly #tuner: Tuner;
  readonly #peers: Peers | undefined;
  readonly #wake: () => void;

  constructor(
    roleBudgets: RoleBudgets,
    time: Time,
    emitter: LimiterEmitter,
    queues: Queues,
    tuner: Tuner,
    peers: Peers | undefined,
    wake: () => void,
  ) {
    this.#roleBudgets = roleBudgets;
    this.#root = roleBudgets.root;
    this.#time = time;
    this.#emitter = emitter;
    this.#queues = queues;
    this.#tuner = tuner;
    this.#peers = peers;
    this.#wake = wake;
  }

  /** Charges units and slots in every budget at once. Slots are charged only where a limit on them exists. */
  issue(
    { stamp, maxWaitMs }: EntryRequest,
    found: RoleBudget,
    charge: Charge,
    nowUs: number,
    wait: GrantedWait,
    permit: Permit | undefined,
  ): Grant {
    const { units } = charge;
    // Since the budget was found, a listener may have used other keys, so that the budget was evicted and replaced.
    const roleBudget = found.isDetached ? (this.#roleBudgets.current(found) ?? found) : found;
    const isStamped = stamp === "granted";
    // A grant that is stamped already needs no release, unless a slot or a permit has to be freed.
    const holdsSlots = !isStamped || permit !== undefined || this.#isCapped(roleBudget);
    if (holdsSlots) this.#root.inFlight += 1;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      if (holdsSlots) at.inFlight += 1;
      if (units === 0) continue;
      if (isStamped) at.write(charge, nowUs);
      else at.reserve(charge);
    }
    if (units > 0) roleBudget.acquired += 1;
    else roleBudget.headSkipped += 1;
    if (units > 0 && !isStamped) roleBudget.countFirstWindows(nowUs);
    this.#peers?.charged(roleBudget, charge);
    if (isStamped) this.#peers?.written(roleBudget, units);
    permit?.recordWait(wait.waitedMs);
    const state = isStamped ? (holdsSlots ? "settled" : "over") : "granted";
    // Before the event: a listener may reload the limits, and the grant belongs to the former ones.
    const grant = new Grant(this, roleBudget, charge, wait, permit, state, nowUs);
    this.#emitter.granted(roleBudget, charge, wait, maxWaitMs !== 0);
    return grant;
  }

  recordResponse(roleBudget: RoleBudget, feedback: ServerFeedback): void {
    this.#tuner.recordResponse(roleBudget, feedback);
  }

  stamp(roleBudget: RoleBudget, generation: number, charge: Charge, grantedUs: number): number {
    const nowUs = this.#time.monotonicUs();
    const { units } = charge;
    if (units === 0) return nowUs;
    const batch = this.#batchOf(roleBudget, generation);
    if (batch === undefined)
      for (let at: Budget | undefined = roleBudget; at; at = at.above) at.writeReserved(charge, nowUs);
    else this.#writtenInBatch(batch, charge, nowUs);
    this.#peers?.written(roleBudget, units);
    if (this.#queues.waiting === 0) return nowUs;
    for (const each of batch?.roleBudgets ?? [roleBudget]) this.#queues.writtenLate(each, nowUs - grantedUs);
    if (this.#queues.hasSuspects) this.#wake();
    return nowUs;
  }

  #batchOf(roleBudget: RoleBudget, generation: number): RequestBatch | undefined {
    return this.#roleBudgets.carried.formerRequests.of(roleBudget, generation);
  }

  #writtenInBatch(batch: RequestBatch, charge: Charge, nowUs: number): void {
    batch.written(charge, nowUs);
    this.#roleBudgets.carried.formerRequests.ended(batch);
    // The store has counted it as written at the reload. It was written only now, so it is reported again.
    this.#peers?.takenOver(batch.unknownToStore(batch.budgets, charge.units));
  }

  giveBack(roleBudget: RoleBudget, generation: number, charge: Charge): void {
    if (charge.units === 0) return;
    const batch = this.#batchOf(roleBudget, generation);
    batch?.giveBack(charge);
    for (const at of batch?.budgets.keys() ?? [roleBudget, ...budgetsAbove(roleBudget)]) {
      if (batch === undefined) at.giveBack(charge);
      this.#queues.counted.paceChanged(at);
    }
    if (batch !== undefined) this.#roleBudgets.carried.formerRequests.ended(batch);
    this.#peers?.returned(roleBudget, charge.units);
  }

  refund(roleBudget: RoleBudget, charge: Charge, stampedUs: number): void {
    if (charge.units === 0 || !this.isRefundable(stampedUs)) return;
    const nowUs = this.#time.monotonicUs();
    for (let at: Budget | undefined = this.#roleBudgets.current(roleBudget); at; at = at.above) {
      at.refund(charge, stampedUs, nowUs);
      this.#queues.counted.paceChanged(at);
    }
    this.#wake();
  }

  reportCosts(roleBudget: RoleBudget, leased: Costs, used: Costs): void {
    this.#peers?.costsUsed(roleBudget, leased, used);
  }

  settle(roleBudget: RoleBudget, generation: number, charged: Costs, used: Costs, stampedUs: number | undefined): void {
    const nowUs = this.#time.monotonicUs();
    const batch = this.#batchOf(roleBudget, generation);
    // A larger amount is charged to the current budgets. A smaller one is returned to the budgets that were charged.
    const current = this.#roleBudgets.current(roleBudget);
    for (const [unit, amount] of used) {
      const more = amount - (charged.get(unit) ?? 0);
      if (more === 0) continue;
      const settled = more > 0 ? current : roleBudget;
      for (const at of batch?.budgets.keys() ?? (settled === undefined ? [] : [settled, ...budgetsAbove(settled)])) {
        at.settle(unit, more, stampedUs, nowUs);
        this.#queues.counted.paceChanged(at);
      }
      if (stampedUs === undefined) batch?.reserveMore(unit, more);
      if (this.#emitter.hasListener("ratelimit.settle")) this.#emitter.settled(roleBudget, unit, amount - more, amount);
    }
    this.#wake();
  }

  /** After a reload the budgets of a grant may count other requests in its place, so nothing is returned to them. */
  isRefundable(stampedUs: number): boolean {
    return stampedUs > this.#roleBudgets.reloadedUs;
  }

  freeSlots(roleBudget: RoleBudget, generation: number): void {
    this.#root.inFlight -= 1;
    const batch = this.#batchOf(roleBudget, generation);
    if (batch === undefined) {
      for (let at: Budget | undefined = roleBudget; at; at = at.above) at.inFlight -= 1;
      this.#slotsFreed(roleBudget);
    } else {
      batch.freeSlot();
      this.#roleBudgets.carried.formerRequests.ended(batch);
      for (const each of new Set([roleBudget, ...batch.roleBudgets])) this.#slotsFreed(each);
    }
    if (this.#queues.waiting > 0) this.#wake();
  }

  #slotsFreed(roleBudget: RoleBudget): void {
    this.#peers?.slotsFreed(roleBudget);
    if (this.#queues.waiting > 0) this.#queues.slotsFreed(roleBudget);
  }

  /** True if any budget that applies limits concurrency. */
  #isCapped(roleBudget: RoleBudget): boolean {
    if (this.#root.policy.maxConcurrent !== Number.POSITIVE_INFINITY) return true;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      if (at.policy.maxConcurrent !== Number.POSITIVE_INFINITY) return true;
    }
    return false;
  }
}
