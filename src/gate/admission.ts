import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import {
  BusyError,
  type Constraint,
  type DecidedBy,
  decidedByText,
  RateLimitExceeded,
  type RejectedError,
  type StoreError,
  type WaitBound,
} from "../errors.ts";
import { type Budget, storeAwayConstraint } from "../limiter/budget.ts";
import type { Charge } from "../limiter/charge.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { estimateFrom, estimateOf, estimatesOf, type WaitEstimate } from "../limiter/estimate.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { EstimatedStart } from "../limiter/queue-estimate.ts";
import type { Queues } from "../limiter/queues.ts";
import { type Refusal, refusalOf } from "../limiter/refusal.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { Waiter, WaiterDetails } from "../limiter/waiter.ts";
import type { Peers } from "../sharing/peers.ts";
import { PROBE_MS, type StoreAway } from "../sharing/store-outage.ts";

/** The setting behind a limit. */
type ExplainLimit = (constraint: Constraint) => DecidedBy;

/** Decides at one instant whether a request can start, and builds the refusal if it cannot. Charges nothing. */
export class Admission {
  readonly #root: Budget;
  readonly #queues: Queues;
  readonly #emitter: LimiterEmitter;
  readonly #breakers: Breakers | undefined;
  readonly #peers: Peers | undefined;

  constructor(
    root: Budget,
    queues: Queues,
    emitter: LimiterEmitter,
    breakers: Breakers | undefined,
    peers: Peers | undefined,
  ) {
    this.#root = root;
    this.#queues = queues;
    this.#emitter = emitter;
    this.#breakers = breakers;
    this.#peers = peers;
  }

  /** Whether a new request can start now: no queued one is before it, and all budgets, leases and records allow it. */
  isFree(call: EntryRequest, roleBudget: RoleBudget, charge: Charge, nowUs: number): boolean {
    return (
      this.isFreeHere(roleBudget, charge, nowUs) && this.#peers?.isReady(call, roleBudget, charge, nowUs) !== false
    );
  }

  /** The same without leases and records, which the store may have. */
  isFreeHere(roleBudget: RoleBudget, charge: Charge, nowUs: number): boolean {
    return this.hasCapacity(roleBudget, charge, nowUs) && !this.#queues.of(roleBudget, charge).isContended(roleBudget);
  }

  /** Whether the budgets of this process admit the request now. Leases of shared budgets are not checked. */
  hasCapacity(roleBudget: RoleBudget, charge: Charge, nowUs: number): boolean {
    return this.#root.hasSlot && roleBudget.hasCapacity(charge, nowUs);
  }

  /**
   * The breaker's permit for a request that every budget admits. Listeners of the breaker are called meanwhile and may
   * enter the gate and take the capacity. Then the permit is released, and "taken" makes the caller decide again.
   */
  permit(
    call: EntryRequest,
    roleBudget: RoleBudget,
    charge: Charge,
    nowUs: number,
  ): Permit | Denial | "taken" | undefined {
    const permit = this.#breakers?.tryAllow(call, this.#peers?.probes);
    if (!(permit instanceof Permit)) return permit;
    const isFree =
      roleBudget.policy.isShadow ||
      (!roleBudget.isDetached &&
        this.hasCapacity(roleBudget, charge, nowUs) &&
        this.#peers?.hasLeases(roleBudget, charge, nowUs) !== false);
    if (isFree) return permit;
    permit.release();
    return "taken";
  }

  /** A lower bound for the start of a new request. The request is judged again when it has joined its queue. */
  earliestStartUs(roleBudget: RoleBudget, charge: Charge, nowUs: number): number {
    return this.#queues.of(roleBudget, charge).estimates.earliestStartUs(roleBudget, charge, nowUs);
  }

  /** When a new request could start that cannot start now, and why. */
  estimate(roleBudget: RoleBudget, charge: Charge, nowUs: number): WaitEstimate {
    return estimateOf(this.#root, this.#queues.of(roleBudget, charge), roleBudget, charge, nowUs);
  }

  /**
   * The same for a request of weight 1 with the usual costs of each role budget; none for those that it could start at
   * now. Of the leases only shared slots are checked, as far as the store has just said that other processes have them.
   */
  estimatesUnlessFree(roleBudgets: readonly RoleBudget[], nowUs: number): ReadonlyMap<RoleBudget, WaitEstimate> {
    const isFree = (roleBudget: RoleBudget) => this.isFreeHere(roleBudget, roleBudget.usualCharge, nowUs);
    const [free = [], waiting = []] = [true, false].map(is => roleBudgets.filter(each => isFree(each) === is));
    const bySchedulers = Map.groupBy(waiting, each => this.#queues.of(each, each.usualCharge));
    const estimates = Array.from(bySchedulers, ([scheduler, group]) => [
      ...estimatesOf(this.#root, scheduler, group, nowUs),
    ]);
    const slots = free.flatMap(each => {
      const constraint = this.#peers?.takenSlot(each, nowUs);
      return constraint === undefined ? [] : [[each, { readyUs: nowUs, constraint }] as const];
    });
    return new Map([...estimates.flat(), ...slots]);
  }

  /** Why a request would be refused now; undefined if it would not, as far as the last replies of the store say. */
  refusal(roleBudget: RoleBudget, charge: Charge, nowUs: number): Refusal | undefined {
    if (!this.isFreeHere(roleBudget, charge, nowUs)) return refusalOf(this.estimate(roleBudget, charge, nowUs), nowUs);
    if (this.#peers?.mayHaveLeases(roleBudget, charge, nowUs) !== false) return undefined;
    const constraint = this.#peers.limitOf({ roleBudget, charge });
    const { readyUs, constraint: local } = this.estimate(roleBudget, charge, nowUs);
    return refusalOf({ readyUs, constraint: constraint ?? local }, nowUs);
  }

  /**
   * Shadow mode: emits what enforcing would have done with a request that is granted now.
   * @param boundMs how long the request may wait
   * @param boundsSlots whether it may not wait longer for a slot either, because it has a bound of its own
   */
  reportShadow(
    roleBudget: RoleBudget,
    charge: Charge,
    boundMs: number,
    boundsSlots: boolean,
    nowUs: number,
    explain: ExplainLimit | undefined,
  ): void {
    if (this.hasCapacity(roleBudget, charge, nowUs)) return;
    const estimate = this.estimate(roleBudget, charge, nowUs);
    const refusal = refusalOf(estimate, nowUs);
    const isLate = estimate.readyUs > nowUs + boundMs * 1000;
    const isBusy = refusal.retryAfterMs === undefined && boundsSlots && boundMs <= 0;
    const verdict = isLate || isBusy || roleBudget.impossibleCharge(charge) !== undefined ? "refuse" : "wait";
    const decidedBy = this.#emitter.hasListener("ratelimit.shadow") ? explain?.(refusal.constraint) : undefined;
    this.#emitter.shadowed(roleBudget, verdict, refusal, decidedBy && decidedByText(decidedBy));
  }

  /** The error for a new request that cannot start within its bound. */
  reject(call: EntryRequest, roleBudget: RoleBudget, charge: Charge, boundMs: number, nowUs: number): RejectedError {
    this.recordRefusal(roleBudget, charge);
    return rejection(call, roleBudget, refusalOf(this.estimate(roleBudget, charge, nowUs), nowUs), boundMs);
  }

  /** The error for a request that was admitted and cannot start within its bound. It must still be queued. */
  rejectLate(
    waiter: Waiter,
    nowUs: number,
    start: EstimatedStart = this.#queues.schedulerOf(waiter).estimates.startOfQueued(waiter, nowUs),
  ): RejectedError {
    const { call, roleBudget, charge, boundMs } = waiter;
    const waitedMs = waiter.waitedMs(nowUs);
    this.recordRefusal(roleBudget, charge, waitedMs);
    return rejection(
      call,
      roleBudget,
      refusalOf(estimateFrom(this.#root, roleBudget, charge, start, nowUs), nowUs),
      boundMs,
      waitedMs,
    );
  }

  /**
   * The error for a request that may not wait for the end of a denial. If an operator holds the calls, it is the error
   * of a rate limit.
   */
  rejectDenied(denial: Denial, { call, roleBudget, charge, boundMs }: WaiterDetails, waitedMs?: number): RejectedError {
    if (!denial.isHold) return denial.error();
    this.recordRefusal(roleBudget, charge, waitedMs);
    const { constraint, retryAfterMs } = denial;
    return rejection(call, roleBudget, { constraint, retryAfterMs }, boundMs, waitedMs);
  }

  /** The error for a request that is refused because the store is away: the store's error if no retry can succeed. */
  rejectWithoutStore(roleBudget: RoleBudget, charge: Charge, { error }: StoreAway): RejectedError | StoreError {
    this.recordRefusal(roleBudget, charge);
    if (error.isPermanent) return error;
    return new RateLimitExceeded({
      host: roleBudget.name,
      role: roleBudget.role,
      constraint: storeAwayConstraint(roleBudget.name),
      maxWaitMs: 0,
      maxWaitOption: "when_store_away",
      retryAfterMs: PROBE_MS,
    });
  }

  /** `waitedMs` for a request that was queued first; undefined if it is refused on arrival. */
  recordRefusal(roleBudget: RoleBudget, charge: Charge, waitedMs?: number): void {
    roleBudget.refused += 1;
    this.#emitter.refused(roleBudget, charge, waitedMs);
  }
}

/**
 * Whether a request may wait for the end of a denial. It depends on the reason:
 * - Traffic resumes after a cooldown with few calls: the request waits as for a concurrency slot (law L4).
 * - An operator's hold must end within the bound of the request. `maxBreakerWaitMs` does not apply to it.
 * - With `maxBreakerWaitMs`, an open circuit, a cooldown or the lease of a probe must end within the rest of this time.
 * - Otherwise an open circuit or a cooldown must end within the bound. A half-open circuit whose probe is in flight has
 *   no known end: the request waits for it until its bound is over.
 * @param breakerWaitMs how long denials have blocked the request before, in milliseconds
 */
export function mayWaitFor(
  denial: Denial,
  call: EntryRequest,
  latestStartUs: number,
  nowUs: number,
  breakerWaitMs = 0,
): boolean {
  const { state, untilUs } = denial;
  const { maxWaitMs, maxBreakerWaitMs, earlier } = call;
  if (denial.isRampUp) return maxWaitMs === undefined || nowUs < latestStartUs;
  if (denial.isHold) return untilUs <= latestStartUs;
  if (maxBreakerWaitMs !== undefined) {
    const leftMs = maxBreakerWaitMs - breakerWaitMs - (earlier?.breakerWaitMs ?? 0);
    return untilUs <= Math.min(latestStartUs, nowUs + leftMs * 1000);
  }
  return state === "half_open" ? nowUs < latestStartUs : untilUs <= latestStartUs;
}

/** Throws a RangeError for a bad bound of the call. */
export function checkBounds({ maxWaitMs, maxBreakerWaitMs }: EntryRequest): void {
  if (maxWaitMs !== undefined && !(maxWaitMs >= 0))
    throw new RangeError(`maxWaitMs must be at least 0, got ${maxWaitMs}`);
  if (maxBreakerWaitMs !== undefined && !(maxBreakerWaitMs >= 0))
    throw new RangeError(`maxBreakerWaitMs must be at least 0, got ${maxBreakerWaitMs}`);
}

function rejection(
  call: EntryRequest,
  roleBudget: RoleBudget,
  { constraint, retryAfterMs }: Refusal,
  maxWaitMs: number,
  sinceArrivalMs = 0,
): RejectedError {
  const maxWaitOption: WaitBound["maxWaitOption"] = call.maxWaitMs === undefined ? "max_delay_ms" : call.maxWaitOption;
  const waitedMs = sinceArrivalMs + (call.earlier?.waitedMs ?? 0);
  const details = { host: roleBudget.name, role: roleBudget.role, constraint, maxWaitMs, maxWaitOption, waitedMs };
  return retryAfterMs === undefined ? new BusyError(details) : new RateLimitExceeded({ ...details, retryAfterMs });
}
