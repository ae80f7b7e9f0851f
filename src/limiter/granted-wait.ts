import type { Constraint, DecidedBy } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { WaitParts } from "./entry-request.ts";
import type { Waiter } from "./waiter.ts";

/** How long a granted request waited, and for what. */
export interface GrantedWait extends WaitParts {
  /** Milliseconds until the grant. */
  readonly waitedMs: number;
  /** The limit or circuit that the longest part was spent on; undefined if none delayed the request. */
  readonly waitedFor: Constraint | undefined;
  /** The setting behind `waitedFor`; undefined without a hub, which has the policy. */
  readonly decidedBy: DecidedBy | undefined;
}

/** The wait of a request that was granted on arrival. */
export const NO_WAIT: GrantedWait = Object.freeze({
  ...{ waitedMs: 0, slotWaitMs: 0, breakerWaitMs: 0, waitedFor: undefined, decidedBy: undefined },
});

/** The wait of a request that was queued. Made before the grant is charged, because the charge moves the windows. */
export class QueuedWait implements GrantedWait {
  readonly waitedMs: number;
  readonly slotWaitMs: number;
  readonly breakerWaitMs: number;
  readonly waitedFor: Constraint | undefined;
  readonly #explain: ((constraint: Constraint) => DecidedBy) | undefined;
  #decidedBy: DecidedBy | undefined;

  constructor(waiter: Waiter, nowUs: number, explain: ((constraint: Constraint) => DecidedBy) | undefined) {
    this.waitedMs = waiter.waitedMs(nowUs);
    const { slotWaitMs, breakerWaitMs } = waitPartsOf(waiter, nowUs);
    this.slotWaitMs = slotWaitMs;
    this.breakerWaitMs = breakerWaitMs;
    this.waitedFor = waiter.waitedFor(nowUs, this.slotWaitMs);
    this.#explain = explain;
  }

  /** Found when it is first asked for: most waits are never reported. */
  get decidedBy(): DecidedBy | undefined {
    if (this.waitedFor !== undefined) this.#decidedBy ??= this.#explain?.(this.waitedFor);
    return this.#decidedBy;
  }
}

/** The parts of the wait until now, of a request that waits or has waited. */
export function waitPartsOf(waiter: Waiter, nowUs: number): WaitParts {
  const slotWaitMs = waiter.isBlocked ? 0 : Math.max(0, (nowUs - rateReadyUsOf(waiter, nowUs)) / 1000);
  return { slotWaitMs, breakerWaitMs: waiter.breakerWaitMs(nowUs) };
}

/** The instant since which only slots and turns have delayed the request: no rate and no breaker. */
function rateReadyUsOf(waiter: Waiter, nowUs: number): number {
  const { roleBudget, charge, arrivedUs, blockedUntilUs } = waiter;
  let rateReadyUs = Math.max(arrivedUs, blockedUntilUs, waiter.rateReadyUs);
  for (let at: Budget | undefined = roleBudget; at; at = at.above)
    rateReadyUs = Math.max(rateReadyUs, at.earliestUs(charge, nowUs));
  return rateReadyUs;
}
