import type { Outcome } from "./classify.ts";

/** How a call ended, as reported to a circuit breaker. */
export interface CallResult {
  readonly outcome: Outcome;
  readonly status?: number | undefined;
  /** The wait that the server asked for. Used only when the outcome is a throttle. */
  readonly retryAfterMs?: number | undefined;
}
