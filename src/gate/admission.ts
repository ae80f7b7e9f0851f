/** What is decided about a request before anything is taken: what it weighs, whether it may wait, how it is refused. */
import { BusyError, RateLimitExceeded, type RejectedError } from "../errors.ts";
import type { Budget, Lane } from "./budget.ts";
import type { Denial } from "./denial.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Refusal } from "./grant.ts";
import type { Turnstile } from "./turnstile.ts";

/**
 * A known end may be waited for within the bound. A half-open circuit's probe ends nobody knows when: only a call that
 * brought its own bound waits for it, the others are told at once.
 */
export function mayWaitFor({ state, untilUs }: Denial, { maxWaitMs }: EntryRequest, lastUs: number): boolean {
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

export function unitsOf({ method, weight = 1 }: EntryRequest, lane: Lane): number {
  if (method !== undefined && !lane.policy.countsHead && method.toUpperCase() === "HEAD") return 0;
  if (weight !== 1) checkWeight(weight, lane);
  return weight;
}

/** A weight that no window could ever grant is the caller's mistake, not an endless wait (law L6). */
export function checkWeight(weight: number, lane: Lane): void {
  if (!Number.isSafeInteger(weight) || weight < 1)
    throw new RangeError(`weight must be a whole number from 1, not ${weight}`);
  for (let at: Budget | undefined = lane; at; at = at.above) {
    for (const [index, { limit }] of at.windows.entries()) {
      if (weight > limit)
        throw new RangeError(`weight ${weight} can never pass ${at.policy.labels[index]} of ${at.name}`);
    }
  }
}
