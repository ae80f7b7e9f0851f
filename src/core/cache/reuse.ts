/**
 * Decides whether a response is stored (RFC 9111, section 3), and how a stored one is used for a request (section 4;
 * RFC 5861 for stale responses).
 */
import { parseContentRange } from "./byte-range.ts";
import type { RequestControl, ResponseControl } from "./cache-control.ts";
import {
  ageMs,
  type DatedResponse,
  type EntryFacts,
  freshnessLifetimeMs,
  HEURISTICALLY_CACHEABLE,
  hasGivenLifetime,
  mayAssumeLifetime,
} from "./freshness.ts";
import { firstValue } from "./stored-fields.ts";
import { varyNames } from "./vary.ts";

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
 * `only-if-cached` is not handled here: the caller turns `revalidate` into a 504. A response with `must-revalidate` is
 * not served stale because of `max-stale`. Fetch's modes `force-cache` and `only-if-cached` do serve it, as the
 * standard of fetch says.
 */
export function decideReuse(entry: EntryFacts, request: RequestControl, nowMs: number): ReuseDecision {
  const { control, mayHaveOwnLifetime } = entry;
  const currentAgeMs = ageMs(nowMs, entry);
  const ownLifetimeMs = mayHaveOwnLifetime ? request.ownLifetimeMs : undefined;
  // Counted from the receipt, not from the server's `Date`: its clock may be behind by more than this lifetime.
  const ownAgeMs = Math.abs(nowMs - entry.receivedMs);
  const staleMs = ownLifetimeMs === undefined ? currentAgeMs - entry.lifetimeMs : ownAgeMs - ownLifetimeMs;
  if (request.acceptsAnyAge) return staleMs < 0 ? FRESH : STALE;
  if (control.noCache || request.noCache) return MUST_REVALIDATE;

  const graceS = Math.max(control.staleIfErrorS, request.staleIfErrorS);
  const onError = isWithin(staleMs, graceS) ? REVALIDATE_OR_SERVE : REVALIDATE;
  const revalidate = control.mustRevalidate ? MUST_REVALIDATE : onError;
  // A reload sends `max-age=0`, which must revalidate even within the millisecond of the response.
  const isTooOld = currentAgeMs > request.maxAgeS * 1000 || request.maxAgeS === 0;

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

/** Statuses whose caching rules this cache implements, as `must-understand` requires. */
const UNDERSTOOD_STATUSES: ReadonlySet<number> = new Set([...HEURISTICALLY_CACHEABLE, 302, 303, 307]);

/**
 * Never stored, whatever the headers say. A 304 has no body. 428, 429, 431 and 511 must not be stored
 * (RFC 6585). 401 and 407 depend on the caller's credentials, which are not part of the cache key. A 416 is about the
 * requested range, which is not part of it either.
 */
const NEVER_STORED: ReadonlySet<number> = new Set([304, 401, 407, 416, 428, 429, 431, 511]);

export interface StorableExchange extends DatedResponse {
  readonly method: string;
  /** The URL of the request. */
  readonly url: string;
  readonly requestControl: RequestControl;
}

/**
 * Whether a response may be stored (RFC 9111, section 3). For a private cache with one user: responses to requests with
 * `Authorization` may be stored, and `s-maxage` does not apply.
 *
 * GET is stored; HEAD is answered from a stored GET, and its own response has no body. The response to a POST is stored
 * for later GETs when the server says that it is one: with an explicit lifetime, and the same URL in `Content-Location`
 * (RFC 9110, section 9.3.3).
 *
 * A heuristically cacheable status is stored when it has an explicit lifetime, a basis for a heuristic one, a
 * validator, or a lifetime set by the caller. Any other final status (302, 403, 503) is stored only while it is fresh,
 * because a failure that cannot be reused must not replace a response that can.
 */
export function isStorable(exchange: StorableExchange): boolean {
  const { method, status, headers, requestControl, responseControl: control } = exchange;
  if (status < 200 || status > 599 || NEVER_STORED.has(status)) return false;
  if (method !== "GET" && !(method === "POST" && isRepresentation(exchange))) return false;
  if (requestControl.noStore || !permitsStorage(control, status)) return false;
  if (varyNames(headers["vary"]).includes("*")) return false;
  if (status === 206 && parseContentRange(headers["content-range"]) === undefined) return false;
  if ((requestControl.ownLifetimeMs ?? 0) > 0 && !hasGivenLifetime(exchange) && mayAssumeLifetime(exchange))
    return true;
  if (!HEURISTICALLY_CACHEABLE.has(status)) return freshnessLifetimeMs(exchange) > 0;
  return control.maxAgeS !== undefined || ["expires", "etag", "last-modified"].some(name => firstValue(headers[name]));
}

/** With `must-understand`, `no-store` applies only to caches that do not know the rules of the status. */
function permitsStorage({ noStore, mustUnderstand }: ResponseControl, status: number): boolean {
  return mustUnderstand ? UNDERSTOOD_STATUSES.has(status) : !noStore;
}

/** Whether the response to a POST is what a GET of the same URL would return, for an explicit time. */
function isRepresentation(exchange: StorableExchange): boolean {
  const { status, url, headers, responseControl: control } = exchange;
  const location = firstValue(headers["content-location"]);
  if (status !== 200 || location === undefined) return false;
  if (control.maxAgeS === undefined && firstValue(headers["expires"]) === undefined) return false;
  return URL.parse(location, url)?.href === URL.parse(url)?.href && freshnessLifetimeMs(exchange) > 0;
}
