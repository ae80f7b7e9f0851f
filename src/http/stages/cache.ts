import { parseRange } from "../../core/cache/byte-range.ts";
import { type RequestControl, requestControl, withCacheMode } from "../../core/cache/cache-control.ts";
import { deliverNotCached } from "../cache/cache-reply.ts";
import { ResponseCache, type ResponseCacheDeps } from "../cache/response-cache.ts";
import type { StoredResponses } from "../cache/stored-responses.ts";
import type { CallOptions } from "../call-options.ts";
import { joinedHeader } from "../headers.ts";
import type { OutgoingRequest, SendRequest } from "./stage.ts";

export interface CacheStageDeps extends Omit<ResponseCacheDeps, "stored" | "next"> {
  /** Undefined for no cache: then the stage only answers `offline` and `only-if-cached` requests. */
  readonly stored: StoredResponses | undefined;
}

/** A request with one of these headers is passed to the server: its caller has its own copy. */
const CONDITIONAL_HEADERS: ReadonlySet<string> = new Set([
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
]);

/**
 * A private HTTP cache (RFC 9111) before the limiter and the breakers: a hit uses no rate-limit unit, no slot and no
 * breaker permit, and is served while the circuit is open (law L8). Identical requests in flight are one request.
 */
export function cacheStage({ stored, ...deps }: CacheStageDeps, next: SendRequest): SendRequest {
  const cache = stored && new ResponseCache({ ...deps, stored, next });
  return (request, sink) => {
    const { headers, call, cacheMode } = request;
    const directives = requestControl(joinedHeader(headers, "cache-control"), joinedHeader(headers, "pragma"));
    const requested = cacheMode === "default" ? directives : withCacheMode(directives, cacheMode);
    const control = withCallOptions(requested, call);
    if (cache !== undefined && mayUseCache(request, control)) return cache.send(request, control, sink);
    if (control.onlyIfCached) return deliverNotCached(request, sink);
    return next(request, cache === undefined ? sink : cache.invalidatingSink(request, control, sink));
  };
}

function withCallOptions(control: RequestControl, { offline, cacheLifetimeMs: ownLifetimeMs }: CallOptions) {
  if (!offline && ownLifetimeMs === undefined) return control;
  return { ...control, ownLifetimeMs, ...(offline && { onlyIfCached: true, acceptsAnyAge: true }) };
}

function mayUseCache({ role, method, headers, body, options }: OutgoingRequest, { noStore }: RequestControl): boolean {
  // A body is not part of the cache key.
  if (body !== undefined && body !== null) return false;
  if (role === "artifact" || noStore || (method !== "GET" && method !== "HEAD") || options.upgrade) return false;
  let hasRange = false;
  let isConditionalRange = false;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (CONDITIONAL_HEADERS.has(name)) return false;
    hasRange ||= name === "range";
    isConditionalRange ||= name === "if-range";
  }
  if (!hasRange) return !isConditionalRange;
  return method === "GET" && parseRange(joinedHeader(headers, "range")) !== undefined;
}
