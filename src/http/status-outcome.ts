/** How a response with this status counts: `throttled` for 429 and 503, `failed` for other 5xx and 408, else `answered`. */
export function statusOutcome(status: number): "answered" | "throttled" | "failed" {
  if (status === 429 || status === 503) return "throttled";
  return status >= 500 || status === 408 ? "failed" : "answered";
}
