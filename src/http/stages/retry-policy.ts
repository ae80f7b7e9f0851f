import type { BackoffPolicy } from "../../core/breaker/backoff.ts";
import type { RetryOptions } from "../hub-options.ts";

/** Resolved `RetryOptions`. */
export interface RetryPolicy extends BackoffPolicy {
  /** Attempts in all, the first one included: 1 or more. */
  readonly attempts: number;
  /** No attempt begins later than this after the call, unless the call has its own deadline. */
  readonly deadlineMs: number;
}

const DEFAULTS: RetryPolicy = { attempts: 4, baseMs: 500, capMs: 30_000, deadlineMs: 120_000 };

/** Throws a RangeError that names the option. */
export function retryPolicyFrom(options: false | RetryOptions = {}): RetryPolicy {
  if (options === false) return { ...DEFAULTS, attempts: 1 };
  const { attempts = DEFAULTS.attempts } = options;
  if (!(Number.isInteger(attempts) && attempts >= 1))
    throw new RangeError(`retry.attempts must be a whole number of at least 1, not ${attempts}`);
  const ms = (key: "baseMs" | "capMs" | "deadlineMs") => {
    const value = options[key] ?? DEFAULTS[key];
    if (!(value >= 0)) throw new RangeError(`retry.${key} must be 0 or more, not ${value}`);
    return value;
  };
  return { attempts, baseMs: ms("baseMs"), capMs: ms("capMs"), deadlineMs: ms("deadlineMs") };
}
