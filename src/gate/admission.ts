/** Decisions about a request before anything is charged: whether it may wait, and how it is refused. */

import type { Denial } from "../breaker/denial.ts";
import { BusyError, RateLimitExceeded, type RejectedError, type WaitBound } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Refusal } from "../limiter/refusal.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";

/**
 * Whether a request may wait for the end of a denial.
 * An open circuit or a cooldown has a known end, which must lie within the bound. A half-open circuit whose probe is in
 * flight has none: only a call with its own `maxWaitMs` waits for it. With `maxBreakerWaitMs` the end of the probe's
 * lease counts as the end.
 */
export function mayWaitFor(denial: Denial, call: EntryRequest, latestStartUs: number, nowUs: number): boolean {
  const { state, untilUs } = denial;
  const { maxWaitMs, maxBreakerWaitMs } = call;
  if (maxBreakerWaitMs !== undefined) return untilUs <= Math.min(latestStartUs, nowUs + maxBreakerWaitMs * 1000);
  return state === "half_open" ? maxWaitMs !== undefined && maxWaitMs > 0 : untilUs <= latestStartUs;
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

/** Throws a RangeError for a bad bound of the call. */
export function checkBounds({ maxWaitMs, maxBreakerWaitMs }: EntryRequest): void {
  if (maxWaitMs !== undefined && !(maxWaitMs >= 0))
    throw new RangeError(`maxWaitMs must be at least 0, got ${maxWaitMs}`);
  if (maxBreakerWaitMs !== undefined && !(maxBreakerWaitMs >= 0))
    throw new RangeError(`maxBreakerWaitMs must be at least 0, got ${maxBreakerWaitMs}`);
}
