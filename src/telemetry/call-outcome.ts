import { statusOutcome } from "../http/status-outcome.ts";
import type { EventOf } from "./events.ts";

/**
 * How a call ended. `answered`: a response that is not a failure, 404 included. `cached`: served from the cache or by
 * another request. `throttled`: 429 or 503. `failed`: another 5xx, 408 or an error. `refused`: refused by the hub, not sent.
 * `aborted`: ended by the caller, while the host was not at fault.
 */
export type CallOutcome = "answered" | "cached" | "throttled" | "failed" | "refused" | "aborted";
export const CALL_OUTCOMES: readonly CallOutcome[] = [
  "answered",
  "cached",
  "throttled",
  "failed",
  "refused",
  "aborted",
];

const REFUSAL_CODES: ReadonlySet<string> = new Set(["DOCSTOKG_RATE_LIMITED", "DOCSTOKG_BREAKER_OPEN", "DOCSTOKG_BUSY"]);

export function callOutcomeOf(event: EventOf<"http_request">): CallOutcome {
  const { status, error, coalesced, from_cache, aborted, breaker_recorded } = event;
  if (error !== undefined && REFUSAL_CODES.has(error)) return "refused";
  if (status !== undefined && !from_cache) {
    const byStatus = statusOutcome(status);
    if (byStatus !== "answered") return byStatus;
  }
  // If the caller gave up because the host was silent, the breaker has recorded a failure, and the call counts as failed.
  if (aborted && breaker_recorded !== "failure") return "aborted";
  if (error !== undefined || status === undefined) return "failed";
  return from_cache || coalesced ? "cached" : "answered";
}

/**
 * How the cache took part in a call. `hit` and `stale`: served without a request. `after_request`: served from the cache
 * after a request was sent: it failed, or a redirect led to the stored response. `revalidated`: confirmed by the server
 * (304). `coalesced`: answered by another identical request in flight.
 */
export type CacheResult = "hit" | "stale" | "after_request" | "revalidated" | "coalesced";
export const CACHE_RESULTS: readonly CacheResult[] = ["hit", "stale", "after_request", "revalidated", "coalesced"];

/** Undefined when the cache took no part. */
export function cacheResultOf(event: EventOf<"http_request">): CacheResult | undefined {
  const { from_cache, coalesced, revalidated, stale, attempts } = event;
  if (coalesced) return "coalesced";
  if (!from_cache) return undefined;
  if (revalidated) return "revalidated";
  if (attempts > 0) return "after_request";
  return stale ? "stale" : "hit";
}
