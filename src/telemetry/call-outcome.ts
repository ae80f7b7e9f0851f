import type { EventOf } from "./events.ts";

/**
 * How a call ended. `answered`: a response that is not a failure, 404 included. `cached`: served from the cache or by another
 * request. `throttled`: 429 or 503. `failed`: another 5xx, 408 or an error. `refused`: refused by the hub, not sent.
 */
export type CallOutcome = "answered" | "cached" | "throttled" | "failed" | "refused";
export const CALL_OUTCOMES: readonly CallOutcome[] = ["answered", "cached", "throttled", "failed", "refused"];

const REFUSAL_CODES: ReadonlySet<string> = new Set(["DOCSTOKG_RATE_LIMITED", "DOCSTOKG_BREAKER_OPEN", "DOCSTOKG_BUSY"]);

export function callOutcomeOf(event: EventOf<"http_request">): CallOutcome {
  const { status, error, coalesced, from_cache } = event;
  if (error !== undefined && REFUSAL_CODES.has(error)) return "refused";
  if (error !== undefined || status === undefined) return "failed";
  if (from_cache || coalesced) return "cached";
  if (status === 429 || status === 503) return "throttled";
  return status >= 500 || status === 408 ? "failed" : "answered";
}
