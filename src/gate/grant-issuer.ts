import type { Permit } from "../breaker/permit.ts";
import type { Budget, Lane } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { type Answer, Grant, type GrantKeeper } from "../limiter/grant.ts";
import type { GateTeller } from "../limiter/limiter-emitter.ts";
import type { Turnstile } from "../limiter/scheduler.ts";
import type { Tuner } from "../limiter/tuner.ts";
import { DRIFT_US } from "../limiter/wait-queue.ts";
import type { OtherProcesses } from "../sharing/peers.ts";
import type { Time } from "../time/time.ts";

/** Where grants are paid for and come back: what is taken from every budget on the way is given back to every one. */
export class Till implements GrantKeeper {
  readonly #root: Budget;
  readonly #time: Time;
  readonly #teller: GateTeller;
  readonly #counted: Turnstile;
  readonly #uncounted: Turnstile;
  readonly #tuner: Tuner;
  readonly #others: OtherProcesses | undefined;

  constructor(
    root: Budget,
    time: Time,
    teller: GateTeller,
    counted: Turnstile,
    uncounted: Turnstile,
    tuner: Tuner,
    others: OtherProcesses | undefined,
  ) {
    this.#root = root;
    this.#time = time;
    this.#teller = teller;
    this.#counted = counted;
    this.#uncounted = uncounted;
    this.#tuner = tuner;
    this.#others = others;
  }

  /** Takes everything on the way at once: slots where there are any to run out of, units where windows count. */
  take(
    { stamp, maxWaitMs }: EntryRequest,
    lane: Lane,
    units: number,
    nowUs: number,
    waitedMs: number,
    permit: Permit | undefined,
  ): Grant {
    const isStamped = stamp === "granted";
    // What is stamped already needs its slots back only where somebody may wait for them.
    const holdsSlots = !isStamped || permit !== undefined || this.#isCapped(lane);
    if (holdsSlots) this.#root.inFlight += 1;
    for (let at: Budget | undefined = lane; at; at = at.above) {
      if (holdsSlots) at.inFlight += 1;
      if (units === 0) continue;
      if (isStamped) at.log.write(at.windows, units, nowUs);
      else at.log.reserve(units);
    }
    if (units > 0) lane.acquired += 1;
    else lane.headSkipped += 1;
    this.#others?.taken(lane, units);
    if (isStamped) this.#others?.written(lane, units);
    permit?.noteWait(waitedMs);
    this.#teller.granted(lane, units, waitedMs, maxWaitMs !== 0);
    const state = isStamped ? (holdsSlots ? "settled" : "over") : "granted";
    return new Grant(this, lane, units, waitedMs, permit, state, nowUs);
  }

  answered(lane: Lane, answer: Answer): void {
    this.#tuner.answered(lane, answer);
  }

  stamp(lane: Lane, units: number, grantedUs: number): void {
    if (units === 0) return;
    const nowUs = this.#time.monotonicUs();
    // Forecasts were made as if it had been written when it was granted.
    if (nowUs - grantedUs > DRIFT_US) this.#counted.outdate(lane);
    for (let at: Budget | undefined = lane; at; at = at.above) at.log.writeReserved(at.windows, units, nowUs);
    this.#others?.written(lane, units);
  }

  giveBack(lane: Lane, units: number): void {
    if (units === 0) return;
    for (let at: Budget | undefined = lane; at; at = at.above) {
      at.log.giveBack(units);
      this.#counted.paceChanged(at);
    }
    this.#others?.returned(lane, units);
  }

  freeSlots(lane: Lane): void {
    this.#root.inFlight -= 1;
    for (let at: Budget | undefined = lane; at; at = at.above) at.inFlight -= 1;
    this.#others?.slotsFreed(lane);
    if (this.#counted.waiting + this.#uncounted.waiting === 0) return;
    lane.uncountedGoFirst = !lane.uncountedGoFirst;
    const turnstiles = lane.uncountedGoFirst ? [this.#uncounted, this.#counted] : [this.#counted, this.#uncounted];
    for (const turnstile of turnstiles) {
      for (let at: Budget | undefined = lane; at; at = at.above) turnstile.slotFreed(at);
      turnstile.slotFreed(this.#root);
      turnstile.pump();
    }
  }

  /** True when somebody may have to wait for a slot on this way. Where nobody can, nobody needs to give one back. */
  #isCapped(lane: Lane): boolean {
    if (this.#root.policy.maxConcurrent !== Number.POSITIVE_INFINITY) return true;
    for (let at: Budget | undefined = lane; at; at = at.above) {
      if (at.policy.maxConcurrent !== Number.POSITIVE_INFINITY) return true;
    }
    return false;
  }
}
