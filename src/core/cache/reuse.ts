/** Decides how a stored response is used for a request (RFC 9111, section 4; RFC 5861 for stale responses). */
import type { RequestControl } from "./cache-control.ts";
import { ageMs, type EntryFacts } from "./freshness.ts";

export type ReuseDecision =
  | { readonly kind: "fresh" }
  /** Stale, and the request accepts that (`max-stale`, `force-cache`). */
  | { readonly kind: "stale" }
  /** Served stale, while a revalidation runs in the background. */
  | { readonly kind: "stale-while-revalidate" }
  /**
   * The server must be asked first. `mayServeOnError`: the stored response may be served when that fails.
   * `mayServeDisconnected`: it may be served when the server cannot be reached (section 4.2.4).
   */
  | { readonly kind: "revalidate"; readonly mayServeOnError: boolean; readonly mayServeDisconnected: boolean };

// Shared, so that a cache hit allocates nothing.
const FRESH: ReuseDecision = Object.freeze({ kind: "fresh" });
const STALE: ReuseDecision = Object.freeze({ kind: "stale" });
const STALE_WHILE_REVALIDATE: ReuseDecision = Object.freeze({ kind: "stale-while-revalidate" });
const MUST_REVALIDATE: ReuseDecision = Object.freeze({
  kind: "revalidate",
  mayServeOnError: false,
  mayServeDisconnected: false,
});
const REVALIDATE: ReuseDecision = Object.freeze({
  kind: "revalidate",
  mayServeOnError: false,
  mayServeDisconnected: true,
});
const REVALIDATE_OR_SERVE: ReuseDecision = Object.freeze({
  kind: "revalidate",
  mayServeOnError: true,
  mayServeDisconnected: true,
});

/**
 * `only-if-cached` is not handled here: the caller turns `revalidate` into a 504.
 * A response with `must-revalidate` is not served stale because of `max-stale`. Only fetch's modes `force-cache` and
 * `only-if-cached`, which the standard of fetch defines so, serve it.
 */
export function decideReuse(entry: EntryFacts, request: RequestControl, nowMs: number): ReuseDecision {
  const { control, lifetimeMs } = entry;
  const age = ageMs(nowMs, entry);
  const staleMs = age - lifetimeMs;
  if (request.acceptsAnyAge) return staleMs < 0 ? FRESH : STALE;
  if (control.noCache || request.noCache) return MUST_REVALIDATE;

  const graceS = Math.max(control.staleIfErrorS, request.staleIfErrorS);
  const onError = isWithin(staleMs, graceS) ? REVALIDATE_OR_SERVE : REVALIDATE;
  const revalidate = control.mustRevalidate ? MUST_REVALIDATE : onError;
  // A reload sends `max-age=0`, which must revalidate even within the millisecond of the response.
  const isTooOld = age > request.maxAgeS * 1000 || request.maxAgeS === 0;

  if (staleMs < 0) {
    // An immutable response does not change while it is fresh (RFC 8246); only `no-cache` revalidates it.
    if (isTooOld && !control.immutable) return revalidate;
    return -staleMs < request.minFreshS * 1000 ? revalidate : FRESH;
  }
  if (control.mustRevalidate || isTooOld || request.minFreshS > 0) return revalidate;
  // `max-stale` of the request first, because it saves the server a revalidation.
  if (isWithin(staleMs, request.maxStaleS)) return STALE;
  // A request that limits age or staleness does not accept stale-while-revalidate beyond that limit.
  const hasNoAgeLimit = request.maxAgeS === Number.POSITIVE_INFINITY && request.maxStaleS === 0;
  return hasNoAgeLimit && isWithin(staleMs, control.staleWhileRevalidateS) ? STALE_WHILE_REVALIDATE : revalidate;
}

/** A grace of 0 s allows nothing, even for a response that became stale in this millisecond. */
function isWithin(staleMs: number, graceS: number): boolean {
  return graceS > 0 && staleMs <= graceS * 1000;
}
