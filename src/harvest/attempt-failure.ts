import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { parseRetryAfterMs } from "../core/breaker/retry-after.ts";
import type { HeaderFields } from "../core/cache/stored-fields.ts";
import { announcedLimits, leastRemaining } from "../core/limits/ratelimit-fields.ts";
import { DeadlineExceededError, PrivateAddressError, RedirectError } from "../errors.ts";
import { TOO_SLOW } from "../files/speed-check.ts";
import { fieldLine } from "../http/headers.ts";
import type { Reason } from "./reason.ts";

/** Why one attempt failed. */
export interface AttemptFailure {
  readonly reason: Reason;
  readonly message: string;
  readonly status?: number | undefined;
  /** Whether the same request may succeed later. */
  readonly mayRetry: boolean;
  /** The service refuses this program, its key or its email address: every other work would be refused too. */
  readonly isForAllWorks?: true | undefined;
}

/** Classifies an error of a request without a complete response. Not for refusals by the hub. */
export function failureOf(error: unknown): AttemptFailure {
  if (error instanceof PrivateAddressError) {
    return { reason: "private-address", message: error.message, mayRetry: false };
  }
  if (error instanceof RedirectError) return { reason: "redirects", message: error.message, mayRetry: false };
  if (error instanceof DeadlineExceededError) return { reason: "time-out", message: error.message, mayRetry: true };
  const code = codeOf(error);
  if (code === TOO_SLOW)
    return { reason: "too-slow", message: error instanceof Error ? error.message : code, mayRetry: true };
  return { reason: /TIMEOUT|TIMEDOUT/.test(code) ? "time-out" : "network", message: code, mayRetry: true };
}

/**
 * Whether a response with this status may be different later. An archive sends the status that a page had when it was
 * captured, which stays as it is.
 */
export function isTransientStatus(status: number, headers: HeaderFields): boolean {
  if (headers["memento-datetime"] !== undefined) return false;
  if (status === 403) return asksToWait(status, headers);
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/** By the rule of the hub: a 403 with Retry-After, or with no remaining quota. */
function asksToWait(status: number, headers: HeaderFields): boolean {
  const line = (name: string) => fieldLine(headers[name]);
  // Only whether a wait is announced matters. Without `Date`, a date in Retry-After counts as in the future.
  const retryAfterMs = parseRetryAfterMs(headers["retry-after"], { responseDate: line("date"), wallMs: 0 });
  const remaining = leastRemaining(announcedLimits(line, 0));
  const outcome = outcomeOfResponse({ status, retryAfterMs, remaining });
  return outcome.kind === "failure" && outcome.throttled;
}

/** The code or name of an error. Messages of other libraries are not used: they may contain a URL with a key. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause === undefined ? error.name : codeOf(error.cause);
}
