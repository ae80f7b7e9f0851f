/**
 * Whether a response may be stored (RFC 9111, section 3). For a private cache with one user: responses to requests with
 * `Authorization` may be stored, and `s-maxage` does not apply.
 */
import { parseContentRange } from "./byte-range.ts";
import type { RequestControl, ResponseControl } from "./cache-control.ts";
import { type DatedResponse, freshnessLifetimeMs, HEURISTICALLY_CACHEABLE } from "./freshness.ts";
import { firstValue } from "./stored-fields.ts";
import { varyNames } from "./vary.ts";

/** Statuses whose caching rules this cache implements, as `must-understand` requires. */
const UNDERSTOOD_STATUSES: ReadonlySet<number> = new Set([...HEURISTICALLY_CACHEABLE, 302, 303, 307]);

/**
 * Never stored, whatever the headers say. A 304 has no body. 428, 429, 431 and 511 must not be stored
 * (RFC 6585). 401 and 407 depend on the caller's credentials, which are not part of the cache key.
 */
const NEVER_STORED: ReadonlySet<number> = new Set([304, 401, 407, 428, 429, 431, 511]);

export interface StorableExchange extends DatedResponse {
  readonly method: string;
  /** The URL of the request. */
  readonly url: string;
  readonly requestControl: RequestControl;
}

/**
 * GET is stored; HEAD is answered from a stored GET, and its own response has no body. The response to a POST is stored
 * for later GETs when the server says that it is one: with an explicit lifetime, and the same URL in `Content-Location`
 * (RFC 9110, section 9.3.3).
 *
 * A heuristically cacheable status is stored when it has an explicit lifetime, a basis for a heuristic one, or a
 * validator. Any other final status (302, 403, 503) is stored only while it is fresh, because a failure that cannot be
 * reused must not replace a response that can.
 */
export function isStorable(exchange: StorableExchange): boolean {
  const { method, status, headers, requestControl, responseControl: control } = exchange;
  if (status < 200 || status > 599 || NEVER_STORED.has(status)) return false;
  if (method !== "GET" && !(method === "POST" && isRepresentation(exchange))) return false;
  if (requestControl.noStore || !permitsStorage(control, status)) return false;
  if (varyNames(headers["vary"]).includes("*")) return false;
  if (status === 206 && parseContentRange(headers["content-range"]) === undefined) return false;
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
