import type { Outcome } from "../../core/breaker/classify.ts";
import { DeadlineExceededError } from "../../errors.ts";

/**
 * What the caller's abort of a request without a response says about the host. A host that was silent for at least half
 * of the call's deadline has failed: otherwise callers with short deadlines would never open the circuit of a host that
 * hangs. Every other abort says nothing.
 * @param silentMs time since the request was written; undefined when nothing was written
 */
export function outcomeOfAbort(reason: unknown, silentMs: number | undefined): Outcome {
  if (!(reason instanceof DeadlineExceededError) || silentMs === undefined) return { kind: "neutral" };
  const isSilent = silentMs * 2 >= reason.deadlineMs;
  return isSilent ? { kind: "failure", cause: "network", throttled: false } : { kind: "neutral" };
}
