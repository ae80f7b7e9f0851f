/** How long a response is fresh and how old it is (RFC 9111, section 4.2), for a private cache. */
import { parseHttpDate } from "../text/http-date.ts";
import { deltaSeconds, type ResponseControl, responseControl } from "./cache-control.ts";
import { firstValue, type HeaderFields } from "./stored-fields.ts";

const DAY_MS = 86_400_000;
/** Heuristic lifetime as a share of the time since `Last-Modified`, as the standard suggests. */
const HEURISTIC_SHARE = 0.1;

/** Statuses with a heuristic lifetime when the server gives none (RFC 9110, section 15.1). */
export const HEURISTICALLY_CACHEABLE: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
]);

/** The parts of a response that decide its lifetime. */
export interface DatedResponse {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly responseControl: ResponseControl;
  /** Local wall clock when the response headers arrived. */
  readonly receivedMs: number;
}

/** Whether the server says how long the response is fresh, even if it says that the response is never fresh. */
export function hasGivenLifetime({ headers, responseControl: control }: Omit<DatedResponse, "receivedMs">): boolean {
  return control.noCache || control.maxAgeS !== undefined || headers["expires"] !== undefined;
}

/** Whether a lifetime that the server does not give may be assumed. */
export function mayAssumeLifetime({ status, responseControl: control }: Omit<DatedResponse, "receivedMs">): boolean {
  return HEURISTICALLY_CACHEABLE.has(status) || control.isPublic;
}

/**
 * Lifetime since the response was generated, in milliseconds; 0 when it must be revalidated each time.
 * `immutable` does not change it: it says that a fresh response does not change, not how long it is fresh.
 */
export function freshnessLifetimeMs(response: DatedResponse): number {
  const { headers, responseControl: control, receivedMs } = response;
  if (control.noCache) return 0;
  if (control.maxAgeS !== undefined) return control.maxAgeS * 1000;

  const generatedMs = dateMs(headers["date"], receivedMs) ?? receivedMs;
  const { expires } = headers;
  if (expires !== undefined) {
    // An invalid date such as "0" means that the response has expired. So do two different dates.
    const isSingleDate = typeof expires === "string" || new Set(expires).size === 1;
    const expiresMs = isSingleDate ? dateMs(expires, receivedMs) : undefined;
    return Math.max(0, (expiresMs ?? generatedMs) - generatedMs);
  }

  if (!mayAssumeLifetime(response)) return 0;
  const unchangedMs = generatedMs - (dateMs(headers["last-modified"], receivedMs) ?? generatedMs);
  return Math.min(Math.max(0, Math.floor(unchangedMs * HEURISTIC_SHARE)), DAY_MS);
}

/** The times that the age of a response is computed from. */
export interface ResponseTiming {
  /** Local wall clock when the request was sent, and when the response headers arrived. */
  readonly requestedMs: number;
  readonly receivedMs: number;
  /** `Date` of the response, by the server's clock. */
  readonly dateMs: number | undefined;
  /** `Age` of the response: how long caches on the way had stored it. */
  readonly ageHeaderS: number | undefined;
}

/**
 * Current age in milliseconds (section 4.2.3). Never negative. If the wall clock is behind `receivedMs`, it was set
 * back. Then the difference counts as age, so that a response stored by a clock that was years ahead is stale.
 */
export function ageMs(atMs: number, { requestedMs, receivedMs, dateMs, ageHeaderS }: ResponseTiming): number {
  const apparentMs = Math.max(0, receivedMs - (dateMs ?? receivedMs));
  const correctedMs = (ageHeaderS ?? 0) * 1000 + Math.max(0, receivedMs - requestedMs);
  return Math.max(apparentMs, correctedMs) + Math.abs(atMs - receivedMs);
}

/** Everything `decideReuse` needs to know about a stored response; computed once for each stored version. */
export interface EntryFacts extends ResponseTiming {
  readonly lifetimeMs: number;
  /** Whether `ownLifetimeMs` of a request applies: the server gives no lifetime, and one may be assumed. */
  readonly mayHaveOwnLifetime: boolean;
  readonly control: ResponseControl;
}

export function entryFacts(
  entry: Pick<DatedResponse, "status" | "headers" | "receivedMs"> & Pick<ResponseTiming, "requestedMs">,
): EntryFacts {
  const { status, headers, requestedMs, receivedMs } = entry;
  const control = responseControl(headers["cache-control"]);
  const response = { status, headers, receivedMs, responseControl: control };
  return {
    requestedMs,
    receivedMs,
    dateMs: dateMs(headers["date"], receivedMs),
    // The first value of a list counts, and an invalid number is ignored (section 5.1).
    ageHeaderS: deltaSeconds(firstValue(firstValue(headers["age"])?.split(",", 1)) ?? ""),
    lifetimeMs: freshnessLifetimeMs(response),
    mayHaveOwnLifetime: !hasGivenLifetime(response) && mayAssumeLifetime(response),
    control,
  };
}

function dateMs(value: string | readonly string[] | undefined, referenceMs: number): number | undefined {
  return parseHttpDate(firstValue(value) ?? "", referenceMs);
}
