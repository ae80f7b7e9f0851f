import { DeadlineExceededError, PrivateAddressError, RedirectError } from "../errors.ts";
import type { Reason } from "./reason.ts";

/** What went wrong with one attempt. */
export interface AttemptFailure {
  readonly reason: Reason;
  readonly message: string;
  readonly status?: number | undefined;
  /** The same may do better a little later. */
  readonly mayRetry: boolean;
}

/** What a request that failed without an answer, or in the middle of one, came to. Not for our own refusals. */
export function failureOf(error: unknown): AttemptFailure {
  if (error instanceof PrivateAddressError) {
    return { reason: "private-address", message: error.message, mayRetry: false };
  }
  if (error instanceof RedirectError) return { reason: "redirects", message: error.message, mayRetry: false };
  const code = codeOf(error);
  const isLate = error instanceof DeadlineExceededError || /TIMEOUT|TIMEDOUT/.test(code);
  return { reason: isLate ? "time-out" : "network", message: code, mayRetry: true };
}

/** The server may well do better another time. */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/** A word for an error. Not its message, which may quote an address. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause === undefined ? error.name : codeOf(error.cause);
}
