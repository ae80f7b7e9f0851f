/**
 * How the events name a response with this status: `throttled` for 429 and every 503, `failed` for other 5xx and 408, else
 * `answered`. For limits and circuits, a 503 is a throttle only with Retry-After (core/breaker/classify.ts).
 */
export function statusOutcome(status: number): "answered" | "throttled" | "failed" {
  if (status === 429 || status === 503) return "throttled";
  return status >= 500 || status === 408 ? "failed" : "answered";
}
