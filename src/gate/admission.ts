/** What is decided about a request before anything is taken: what it weighs, whether it may wait, how it is refused. */

import type { Denial } from "../breaker/denial.ts";
import { BusyError, RateLimitExceeded, type RejectedError } from "../errors.ts";
import type { Lane } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Refusal } from "../limiter/grant.ts";
import type { Turnstile } from "../limiter/scheduler.ts";

/**
 * A known end may be waited for within the bound. A half-open circuit's probe ends nobody knows when: only a call that
 * brought its own bound waits for it, the others are told at once. A call with a bound for outages goes by that alone,
 * and takes the end of the probe's lease for its end.
 */
export function mayWaitFor(denial: Denial, call: EntryRequest, lastUs: number, nowUs: number): boolean {
  const { state, untilUs } = denial;
  const { maxWaitMs, maxCutOffMs } = call;
  if (maxCutOffMs !== undefined) return untilUs <= Math.min(lastUs, nowUs + maxCutOffMs * 1000);
  return state === "half_open" ? maxWaitMs !== undefined && maxWaitMs > 0 : untilUs <= lastUs;
}

/** The units that must find room for a newcomer to go: its own behind those of the line. */
export function wantedBy(turnstile: Turnstile, lane: Lane, units: number): number {
  return units === 0 ? 0 : units + (turnstile.lineOf(lane)?.units ?? 0);
}

export function rejection(lane: Lane, { constraint, retryAfterMs }: Refusal, maxWaitMs: number): RejectedError {
  const details = { host: lane.name, role: lane.role, constraint, maxWaitMs };
  return retryAfterMs === undefined ? new BusyError(details) : new RateLimitExceeded({ ...details, retryAfterMs });
}

/** The bounds that a call brings with it. */
export function checkBounds({ maxWaitMs, maxCutOffMs }: EntryRequest): void {
  if (maxWaitMs !== undefined && !(maxWaitMs >= 0))
    throw new RangeError(`maxWaitMs must be 0 or more, not ${maxWaitMs}`);
  if (maxCutOffMs !== undefined && !(maxCutOffMs >= 0))
    throw new RangeError(`maxCutOffMs must be 0 or more, not ${maxCutOffMs}`);
}
