import type { EventOf } from "./events.ts";

/** What became of a call, as charts and counters tell them apart. */
export type CallOutcome = "answered" | "cached" | "throttled" | "failed" | "refused";
export const CALL_OUTCOMES: readonly CallOutcome[] = ["answered", "cached", "throttled", "failed", "refused"];

const OUR_REFUSALS: ReadonlySet<string> = new Set(["DOCSTOKG_RATE_LIMITED", "DOCSTOKG_BREAKER_OPEN", "DOCSTOKG_BUSY"]);

/** `answered` is every answer that is no trouble of the server's: a 404, too, says that it is well. */
export function callOutcomeOf(event: EventOf<"http_request">): CallOutcome {
  const { status, error, coalesced, from_cache } = event;
  if (error !== undefined && OUR_REFUSALS.has(error)) return "refused";
  if (error !== undefined || status === undefined) return "failed";
  if (from_cache || coalesced) return "cached";
  if (status === 429 || status === 503) return "throttled";
  return status >= 500 || status === 408 ? "failed" : "answered";
}
