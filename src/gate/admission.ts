/** What is decided about a request before anything is taken: what it weighs, whether it may wait, how it is refused. */
import { BusyError, RateLimitExceeded, type RejectedError } from "../errors.ts";
import type { Budget, Lane } from "./budget.ts";
import type { Denial } from "./denial.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Refusal } from "./grant.ts";
import type { Turnstile } from "./turnstile.ts";

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

export function unitsOf({ method, weight = 1 }: EntryRequest, lane: Lane): number {
  if (method !== undefined && !lane.policy.countsHead && method.toUpperCase() === "HEAD") return 0;
  if (weight !== 1) checkWeight(weight, lane);
  return weight;
}

/** A weight that no window could ever grant is the caller's mistake, not an endless wait (law L6). */
export function checkWeight(weight: number, lane: Lane): void {
  if (!Number.isSafeInteger(weight) || weight < 1)
    throw new RangeError(`weight must be a whole number from 1, not ${weight}`);
  const error = impossible(weight, lane);
  if (error !== undefined) throw error;
}

/** What is wrong with a weight that some window on the way can never grant. */
export function impossible(weight: number, lane: Lane): RangeError | undefined {
  for (let at: Budget | undefined = lane; at; at = at.above) {
    for (const [index, { limit }] of at.windows.entries()) {
      if (weight > limit)
        return new RangeError(`weight ${weight} can never pass ${at.policy.labels[index]} of ${at.name}`);
    }
  }
  return undefined;
}

/** The bounds that a call brings with it. */
export function checkBounds({ maxWaitMs, maxCutOffMs }: EntryRequest): void {
  if (maxWaitMs !== undefined && !(maxWaitMs >= 0))
    throw new RangeError(`maxWaitMs must be 0 or more, not ${maxWaitMs}`);
  if (maxCutOffMs !== undefined && !(maxCutOffMs >= 0))
    throw new RangeError(`maxCutOffMs must be 0 or more, not ${maxCutOffMs}`);
}
