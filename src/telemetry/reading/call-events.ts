import type { EventType } from "../events.ts";

/** The events that only calls cause. A limiter or a breaker without a hub emits no `http_request`. */
export const CALL_EVENTS: ReadonlySet<string> = new Set<EventType>([
  "http_request",
  "http_attempt",
  "ratelimit.acquire",
  "breaker_before_call",
  "breaker_success",
  "breaker_failure",
]);
