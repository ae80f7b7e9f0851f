import type { Outcome } from "../../core/breaker/classify.ts";
import { DeadlineExceededError } from "../../errors.ts";

/**
 * The outcome of a request that its caller aborted before a response. If the host was silent for at least half of the
 * call's deadline, it has failed: otherwise callers with short deadlines would never open the circuit of a host that
 * hangs. Every other abort is neutral.
 * @param silentMs time since the request was written; undefined when nothing was written
 */
export function outcomeOfAbort(reason: unknown, silentMs: number | undefined): Outcome {
  if (!(reason instanceof DeadlineExceededError) || silentMs === undefined) return { kind: "neutral" };
  const isSilent = silentMs * 2 >= reason.deadlineMs;
  return isSilent ? { kind: "failure", cause: "network", throttled: false } : { kind: "neutral" };
}
