/**
 * Whether a response may be stored, how long it is fresh, how old it is, and what to do with it when a request comes
 * (RFC 9111, sections 3 and 4; RFC 5861 for the stale ones; RFC 8246 for `immutable`). For a private cache: one user,
 * so answers to requests with `Authorization` may be kept, and `s-maxage` is not for us.
 */

import { parseHttpDate } from "../text/http-date.ts";
import { deltaSeconds, type RequestControl, type ResponseControl, responseControl } from "./cache-control.ts";
import { firstValue, type HeaderFields, varyNames } from "./stored-fields.ts";

const DAY_MS = 86_400_000;
/** The share of the time since the last change that a silent response is taken to hold, as the standard suggests. */
const HEURISTIC_SHARE = 0.1;

/** Stored, and fresh for as long as a guess says, without the server's word (RFC 9110, section 15.1). */
const HEURISTICALLY_CACHEABLE: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]);

/** Those whose meaning for a cache we know, which is what `must-understand` asks. */
const UNDERSTOOD_STATUSES: ReadonlySet<number> = new Set([...HEURISTICALLY_CACHEABLE, 302, 303, 307]);

/**
 * Not stored, whatever they say. 206 and 304 are parts of an answer. 428, 429, 431 and 511 must not be (RFC 6585).
 * 401 and 407 speak of who asked, and nothing in the key of a private cache does: the next request may bring the key.
 */
const NEVER_STORED: ReadonlySet<number> = new Set([206, 304, 401, 407, 428, 429, 431, 511]);

/** A response, as far as its freshness goes. */
export interface DatedResponse {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly responseControl: ResponseControl;
  /** Our wall clock when its headers came. */
  readonly receivedMs: number;
}

export interface StorableExchange extends DatedResponse {
  readonly method: string;
  readonly requestControl: RequestControl;
}

/**
 * GET alone is stored: HEAD is answered from a stored GET, and its own answer has no body to keep.
 *
 * The statuses that say something lasting about the resource are stored by default, if anything can ever come of it:
 * some freshness, a basis to guess one, or a validator. Any other final status, 302, 403 or 503 alike, is stored while
 * it is fresh by the server's own word (or by a guess that `public` permits), as the standard allows, and otherwise
 * not: a failure nobody may reuse must not take the place of an answer that somebody may.
 */
export function isStorable(exchange: StorableExchange): boolean {
  const { method, status, headers, requestControl, responseControl: control } = exchange;
  if (method !== "GET" || status < 200 || status > 599 || NEVER_STORED.has(status)) return false;
  if (requestControl.noStore || !permitsStorage(control, status)) return false;
  if (varyNames(headers["vary"]).includes("*")) return false;
  if (!HEURISTICALLY_CACHEABLE.has(status)) return freshnessLifetimeMs(exchange) > 0;
  return control.maxAgeS !== undefined || ["expires", "etag", "last-modified"].some(name => firstValue(headers[name]));
}

/** With `must-understand`, `no-store` is for those caches only that do not know what the status asks of them. */
function permitsStorage({ noStore, mustUnderstand }: ResponseControl, status: number): boolean {
  return mustUnderstand ? UNDERSTOOD_STATUSES.has(status) : !noStore;
}

/**
 * From its birth on, in milliseconds; 0 for one that must be asked for each time.
 * `immutable` adds nothing: it says that a fresh response stays true, not for how long it is fresh.
 */
export function freshnessLifetimeMs({ status, headers, responseControl: control, receivedMs }: DatedResponse): number {
  if (control.noCache) return 0;
  if (control.maxAgeS !== undefined) return control.maxAgeS * 1000;

  const generatedMs = dateMs(headers["date"], receivedMs) ?? receivedMs;
  const { expires } = headers;
  if (expires !== undefined) {
    // "0" and whatever else is no date lies in the past. Two dates contradict each other, and neither counts.
    const isOne = typeof expires === "string" || new Set(expires).size === 1;
    const expiresMs = isOne ? dateMs(expires, receivedMs) : undefined;
    return Math.max(0, (expiresMs ?? generatedMs) - generatedMs);
  }

  if (!HEURISTICALLY_CACHEABLE.has(status) && !control.isPublic) return 0;
  const unchangedMs = generatedMs - (dateMs(headers["last-modified"], receivedMs) ?? generatedMs);
  return Math.min(Math.max(0, Math.floor(unchangedMs * HEURISTIC_SHARE)), DAY_MS);
}

/** What the age of a response is reckoned from. */
export interface ResponseTiming {
  /** Our wall clock when the request went out, and when the headers of its answer came. */
  readonly requestedMs: number;
  readonly receivedMs: number;
  /** Its `Date`, by the server's clock. */
  readonly dateMs: number | undefined;
  /** How long it had lain in caches on the way, by its `Age`. */
  readonly ageHeaderS: number | undefined;
}

/**
 * Section 4.2.3, in milliseconds. Never negative, and a clock that was set back makes nothing younger than it was when
 * it came: how long ago that is, nobody knows then, so the distance stands for it. An entry from a clock that ran
 * years ahead is thus old at once, instead of fresh for years.
 */
export function ageMs(atMs: number, { requestedMs, receivedMs, dateMs, ageHeaderS }: ResponseTiming): number {
  const apparentMs = Math.max(0, receivedMs - (dateMs ?? receivedMs));
  const correctedMs = (ageHeaderS ?? 0) * 1000 + Math.max(0, receivedMs - requestedMs);
  return Math.max(apparentMs, correctedMs) + Math.abs(atMs - receivedMs);
}

/** All that a judgement needs to know of a stored response; made once, as long as it lies unchanged. */
export interface EntryFacts extends ResponseTiming {
  readonly lifetimeMs: number;
  readonly control: ResponseControl;
}

export function entryFacts(
  entry: Pick<DatedResponse, "status" | "headers" | "receivedMs"> & Pick<ResponseTiming, "requestedMs">,
): EntryFacts {
  const { status, headers, requestedMs, receivedMs } = entry;
  const control = responseControl(headers["cache-control"]);
  return {
    requestedMs,
    receivedMs,
    dateMs: dateMs(headers["date"], receivedMs),
    // Of a list the first counts, and what is no number is ignored (section 5.1).
    ageHeaderS: deltaSeconds(firstValue(firstValue(headers["age"])?.split(",", 1)) ?? ""),
    lifetimeMs: freshnessLifetimeMs({ status, headers, receivedMs, responseControl: control }),
    control,
  };
}

export type ReuseDecision =
  | { readonly kind: "fresh" }
  /** Stale, and the request takes it so. */
  | { readonly kind: "stale" }
  /** Served as it is, while a new one is asked for in the background. */
  | { readonly kind: "stale-while-revalidate" }
  /** The server must be asked first. Should that fail, the stored response may do, or may not. */
  | { readonly kind: "revalidate"; readonly mayServeOnError: boolean };

// Shared, so that a hit allocates nothing.
const FRESH: ReuseDecision = Object.freeze({ kind: "fresh" });
const STALE: ReuseDecision = Object.freeze({ kind: "stale" });
const STALE_WHILE_REVALIDATE: ReuseDecision = Object.freeze({ kind: "stale-while-revalidate" });
const REVALIDATE: ReuseDecision = Object.freeze({ kind: "revalidate", mayServeOnError: false });
const REVALIDATE_OR_SERVE: ReuseDecision = Object.freeze({ kind: "revalidate", mayServeOnError: true });

/**
 * `only-if-cached` is not looked at: whoever may not ask turns `revalidate` into a 504.
 * A response that must be revalidated is never served stale, whoever would take it so.
 */
export function decideReuse(entry: EntryFacts, request: RequestControl, nowMs: number): ReuseDecision {
  const { control, lifetimeMs } = entry;
  if (control.noCache || request.noCache) return REVALIDATE;

  const age = ageMs(nowMs, entry);
  const staleMs = age - lifetimeMs;
  const graceS = Math.max(control.staleIfErrorS, request.staleIfErrorS);
  const revalidate = !control.mustRevalidate && isWithin(staleMs, graceS) ? REVALIDATE_OR_SERVE : REVALIDATE;
  // A reload says `max-age=0`, and means it in the very millisecond of the answer, too.
  const isTooOld = age > request.maxAgeS * 1000 || request.maxAgeS === 0;

  if (staleMs < 0) {
    // What is immutable cannot have changed while it is fresh; only `no-cache`, a forced reload, goes through to ask.
    if (isTooOld && !control.immutable) return revalidate;
    return -staleMs < request.minFreshS * 1000 ? revalidate : FRESH;
  }
  if (control.mustRevalidate || isTooOld || request.minFreshS > 0) return revalidate;
  // The request's own word first: who takes it stale spares the server a question.
  if (isWithin(staleMs, request.maxStaleS)) return STALE;
  // Who says how old or how stale an answer may be takes none that is staler than that.
  const hasNoAgeLimit = request.maxAgeS === Number.POSITIVE_INFINITY && request.maxStaleS === 0;
  return hasNoAgeLimit && isWithin(staleMs, control.staleWhileRevalidateS) ? STALE_WHILE_REVALIDATE : revalidate;
}

/** A grace of 0 is none, even for what is stale since this very millisecond. */
function isWithin(staleMs: number, graceS: number): boolean {
  return graceS > 0 && staleMs <= graceS * 1000;
}

function dateMs(value: string | readonly string[] | undefined, referenceMs: number): number | undefined {
  return parseHttpDate(firstValue(value) ?? "", referenceMs);
}
