/** What is decided about a request before anything is taken: what it weighs, whether it may wait, how it is refused. */

import type { Denial } from "../breaker/denial.ts";
import { BusyError, RateLimitExceeded, type RejectedError, type WaitBound } from "../errors.ts";
import type { RoleBudget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Refusal } from "../limiter/grant.ts";
import type { Scheduler } from "../limiter/scheduler.ts";

/**
 * A known end may be waited for within the bound. A half-open circuit's probe ends nobody knows when: only a call that
 * brought its own bound waits for it, the others are told at once. A call with a bound for outages goes by that alone,
 * and takes the end of the probe's lease for its end.
 */
export function mayWaitFor(denial: Denial, call: EntryRequest, latestStartUs: number, nowUs: number): boolean {
  const { state, untilUs } = denial;
  const { maxWaitMs, maxBreakerWaitMs } = call;
  if (maxBreakerWaitMs !== undefined) return untilUs <= Math.min(latestStartUs, nowUs + maxBreakerWaitMs * 1000);
  return state === "half_open" ? maxWaitMs !== undefined && maxWaitMs > 0 : untilUs <= latestStartUs;
}

/** The units that must find room for a newcomer to go: its own behind those of the line. */
export function unitsNeeded(scheduler: Scheduler, roleBudget: RoleBudget, units: number): number {
  return units === 0 ? 0 : units + (scheduler.queueOf(roleBudget)?.units ?? 0);
}

export function rejection(
  roleBudget: RoleBudget,
  { constraint, retryAfterMs }: Refusal,
  maxWaitMs: number,
  call: EntryRequest,
): RejectedError {
  const maxWaitOption: WaitBound["maxWaitOption"] = call.maxWaitMs === undefined ? "max_delay_ms" : call.maxWaitOption;
  const details = { host: roleBudget.name, role: roleBudget.role, constraint, maxWaitMs, maxWaitOption };
  return retryAfterMs === undefined ? new BusyError(details) : new RateLimitExceeded({ ...details, retryAfterMs });
}

/** The bounds that a call brings with it. */
export function checkBounds({ maxWaitMs, maxBreakerWaitMs }: EntryRequest): void {
  if (maxWaitMs !== undefined && !(maxWaitMs >= 0))
    throw new RangeError(`maxWaitMs must be 0 or more, not ${maxWaitMs}`);
  if (maxBreakerWaitMs !== undefined && !(maxBreakerWaitMs >= 0))
    throw new RangeError(`maxBreakerWaitMs must be 0 or more, not ${maxBreakerWaitMs}`);
}
