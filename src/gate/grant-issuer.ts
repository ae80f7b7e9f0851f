import type { Permit } from "../breaker/permit.ts";
import type { Budget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { Grant, type GrantOwner, type ServerFeedback } from "../limiter/grant.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { Queues } from "../limiter/queues.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { Tuner } from "../limiter/tuner.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time } from "../time/time.ts";

/**
 * Charges grants to every budget that applies, and settles them with the same budgets. `wake` is called when slots are
 * free.
 */
export class GrantIssuer implements GrantOwner {
  readonly #root: Budget;
  readonly #time: Time;
  readonly #emitter: LimiterEmitter;
  readonly #queues: Queues;
  readonly #tuner: Tuner;
  readonly #peers: Peers | undefined;
  readonly #wake: () => void;

  constructor(
    root: Budget,
    time: Time,
    emitter: LimiterEmitter,
    queues: Queues,
    tuner: Tuner,
    peers: Peers | undefined,
    wake: () => void,
  ) {
    this.#root = root;
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
    roleBudget: RoleBudget,
    units: number,
    nowUs: number,
    waitedMs: number,
    permit: Permit | undefined,
  ): Grant {
    const isStamped = stamp === "granted";
    // A grant that is stamped already needs no release, unless a slot or a permit has to be freed.
    const holdsSlots = !isStamped || permit !== undefined || this.#isCapped(roleBudget);
    if (holdsSlots) this.#root.inFlight += 1;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      if (holdsSlots) at.inFlight += 1;
      if (units === 0) continue;
      if (isStamped) at.log.write(at.windows, units, nowUs);
      else at.log.reserve(units);
    }
    if (units > 0) roleBudget.acquired += 1;
    else roleBudget.headSkipped += 1;
    this.#peers?.charged(roleBudget, units);
    if (isStamped) this.#peers?.written(roleBudget, units);
    permit?.recordWait(waitedMs);
    this.#emitter.granted(roleBudget, units, waitedMs, maxWaitMs !== 0);
    const state = isStamped ? (holdsSlots ? "settled" : "over") : "granted";
    return new Grant(this, roleBudget, units, waitedMs, permit, state, nowUs);
  }

  recordResponse(roleBudget: RoleBudget, feedback: ServerFeedback): void {
    this.#tuner.recordResponse(roleBudget, feedback);
  }

  stamp(roleBudget: RoleBudget, units: number, grantedUs: number): void {
    if (units === 0) return;
    const nowUs = this.#time.monotonicUs();
    for (let at: Budget | undefined = roleBudget; at; at = at.above) at.log.writeReserved(at.windows, units, nowUs);
    this.#peers?.written(roleBudget, units);
    if (this.#queues.waiting === 0) return;
    this.#queues.writtenLate(roleBudget, nowUs - grantedUs);
    if (this.#queues.hasSuspects) this.#wake();
  }

  giveBack(roleBudget: RoleBudget, units: number): void {
    if (units === 0) return;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      at.log.giveBack(units);
      this.#queues.counted.paceChanged(at);
    }
    this.#peers?.returned(roleBudget, units);
  }

  freeSlots(roleBudget: RoleBudget): void {
    this.#root.inFlight -= 1;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) at.inFlight -= 1;
    this.#peers?.slotsFreed(roleBudget);
    if (this.#queues.waiting === 0) return;
    this.#queues.slotsFreed(roleBudget);
    this.#wake();
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
