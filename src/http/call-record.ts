import type { Outcome } from "../core/breaker/classify.ts";

/**
 * How the cache took part. `off`: there is none, or it does not apply to this request. `offline`: it had nothing, and the
 * network was not to be asked.
 */
export type CacheStatus = "off" | "hit" | "revalidated" | "stale" | "miss" | "coalesced" | "offline";

/** What is noted down about a call while it lasts, for the stages further out and for whoever listens at its end. */
export class CallRecord {
  cacheStatus: CacheStatus = "off";
  /** How often it was handed to the wire. */
  attempts = 0;
  /** The wall clock when what is under way was written; undefined while it waits or connects. */
  sentMs: number | undefined = undefined;
  /** Waited at the gate, over all attempts that were let through. */
  waitedMs = 0;
  /** How much of that was for a slot, or for a turn, and not for a rate. */
  slotWaitMs = 0;
  /** Since when the one that is in line has been there, in monotonic microseconds. */
  queuedSinceUs: number | undefined = undefined;
  /** What the last attempt said about its host, and what its host asked for. */
  outcome: Outcome | undefined = undefined;
  retryAfterMs: number | undefined = undefined;
}
