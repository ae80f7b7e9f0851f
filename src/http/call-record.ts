import type { Outcome } from "../core/breaker/classify.ts";
import type { RejectedError } from "../errors.ts";

/**
 * How the cache was used. `off`: there is no cache, or it does not apply to this request. `offline`: no stored response,
 * and the request may not use the network. `disconnected`: the stored response must be revalidated, and the host cannot
 * be reached.
 */
export type CacheStatus = "off" | "hit" | "revalidated" | "stale" | "miss" | "coalesced" | "offline" | "disconnected";

/** The facts that stages record about a call, for the outer stages and for the `http_request` event. */
export class CallRecord {
  cacheStatus: CacheStatus = "off";
  /** Number of requests sent. */
  attempts = 0;
  /** Wall-clock time when the current attempt was written; undefined while it is queued or connecting. */
  sentMs: number | undefined = undefined;
  /** Time in the queue, over all attempts that were granted. */
  waitedMs = 0;
  /** The part of `waitedMs` spent waiting for a concurrency slot. */
  slotWaitMs = 0;
  /** When the current attempt was queued, in monotonic microseconds; undefined while none is queued. */
  queuedSinceUs: number | undefined = undefined;
  /** Outcome and Retry-After of the last attempt. */
  outcome: Outcome | undefined = undefined;
  retryAfterMs: number | undefined = undefined;
  /** The refusal that was answered with a response of the hub (`refusals: "respond"`). */
  refusal: RejectedError | undefined = undefined;
}
