import { faultText, type Outcome } from "./classify.ts";

/** How a call ended, as reported to a circuit breaker. */
export interface CallResult {
  /** The classified response or error. */
  readonly outcome: Outcome;
  /** HTTP status, when there was a response. A neutral outcome with a status shows that the host is alive (law B9). */
  readonly status?: number | undefined;
  /** The error with which the call ended, for events. */
  readonly error?: unknown;
  /** The delay of the response's Retry-After, in milliseconds. Used only when the outcome is a throttle. */
  readonly retryAfterMs?: number | undefined;
}

/** How a failed call ended, for messages: `HTTP 503`, or the code or class of its error. Never the error's own text. */
export function failureText({ status, error }: CallResult): string | undefined {
  if (status !== undefined) return `HTTP ${status}`;
  return error === undefined
    ? undefined
    : (faultText(error)?.type ?? (error instanceof Error ? error.name : undefined));
}
