import { INTERRUPTED, NEUTRAL, type Outcome, UNREACHED } from "../../core/breaker/classify.ts";
import { DeadlineExceededError } from "../../errors.ts";

/** How long a request was in flight when its caller aborted it. */
export interface AbortedAfter {
  /** Time since the request was passed to the wire, in ms, the time to connect included. */
  readonly silentMs: number;
  /** Time since the hub first saw the signal of the call, or since the call began if it has no signal, in ms. */
  readonly timeoutMs: number;
  /** True when the request had no connection yet. @default false */
  readonly isUnreached?: boolean;
}

/**
 * The outcome of a request that its caller aborted before a response (law B9). If the host was silent for at least half
 * of the call's deadline, or of its `AbortSignal.timeout`, it has failed: otherwise callers with short timeouts would
 * never open the circuit of a host that hangs. Every other abort is neutral.
 */
export function outcomeOfAbort(reason: unknown, after: AbortedAfter): Outcome {
  const { silentMs, timeoutMs, isUnreached = false } = after;
  const boundMs = reason instanceof DeadlineExceededError ? reason.deadlineMs : timeoutMs;
  const isBound = reason instanceof DeadlineExceededError || isTimeout(reason);
  if (!isBound || silentMs * 2 < boundMs) return NEUTRAL;
  return silentOutcome(isUnreached);
}

/** The outcome of a request whose host was silent. */
export function silentOutcome(isUnreached: boolean): Outcome {
  return isUnreached ? UNREACHED : INTERRUPTED;
}

/** The reason that `AbortSignal.timeout` gives; node:http wraps it in an AbortError. */
function isTimeout(reason: unknown): boolean {
  if (!(reason instanceof Error)) return false;
  const { cause } = reason;
  return reason.name === "TimeoutError" || (cause instanceof Error && cause.name === "TimeoutError");
}
