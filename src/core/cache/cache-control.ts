/**
 * `Cache-Control` (RFC 9111, section 5.2), reduced to the directives that a private cache applies.
 *
 * An invalid value counts as the strictest possible one: a cache that revalidates too often is slow, one that
 * revalidates too rarely is wrong.
 */

/** Directives of a request. An absent limit has the value that limits nothing. */
export interface RequestControl {
  readonly noStore: boolean;
  readonly noCache: boolean;
  readonly onlyIfCached: boolean;
  /** A stored response is not used, not even to revalidate it: fetch's mode `reload`. There is no such directive. */
  readonly ignoresStored: boolean;
  /** A stored response is served however old it is: fetch's mode `force-cache`. There is no such directive. */
  readonly acceptsAnyAge: boolean;
  /** Maximum age of a response in seconds; Infinity when absent. */
  readonly maxAgeS: number;
  /** Seconds that a response must stay fresh; 0 when absent. */
  readonly minFreshS: number;
  /** Seconds that a response may be stale; Infinity for `max-stale` without a value, 0 when absent. */
  readonly maxStaleS: number;
  /** Seconds that a response may be stale when the server fails; 0 when absent. */
  readonly staleIfErrorS: number;
  /** How long a response is fresh if the server does not say; undefined for the heuristic. There is no such directive. */
  readonly ownLifetimeMs: number | undefined;
}

/** Directives of a response. `s-maxage` and `proxy-revalidate` are for shared caches and left out. */
export interface ResponseControl {
  readonly noStore: boolean;
  readonly noCache: boolean;
  readonly mustRevalidate: boolean;
  readonly mustUnderstand: boolean;
  readonly immutable: boolean;
  readonly isPublic: boolean;
  readonly isPrivate: boolean;
  /** Seconds; undefined when absent, then `Expires` applies. */
  readonly maxAgeS: number | undefined;
  readonly staleIfErrorS: number;
  readonly staleWhileRevalidateS: number;
}

/** A header field, or several fields of the same name. */
export type FieldValue = string | readonly string[] | undefined;

/** Larger numbers count as this value, about 68 years, as the standard says. */
const SECONDS_MAX = 2 ** 31;

/**
 * @param pragma used only without `Cache-Control`: the `no-cache` of HTTP/1.0 clients.
 */
export function requestControl(cacheControl: FieldValue, pragma?: FieldValue): RequestControl {
  if (cacheControl === undefined && pragma === undefined) return NO_REQUEST_DIRECTIVES;
  const parsed = directives(cacheControl ?? asNoCache(pragma));
  return Object.freeze({
    noStore: parsed.has("no-store"),
    noCache: parsed.has("no-cache"),
    onlyIfCached: parsed.has("only-if-cached"),
    ignoresStored: false,
    acceptsAnyAge: false,
    maxAgeS: shortest(parsed.get("max-age")) ?? Number.POSITIVE_INFINITY,
    minFreshS: longest(parsed.get("min-fresh")) ?? 0,
    // The only directive with an optional number; without one it accepts any staleness.
    maxStaleS: shortest(parsed.get("max-stale"), Number.POSITIVE_INFINITY) ?? 0,
    staleIfErrorS: shortest(parsed.get("stale-if-error")) ?? 0,
    ownLifetimeMs: undefined,
  });
}

/**
 * `no-cache="set-cookie"` restricts only that field, but is treated as `no-cache`: the standard allows it, and a
 * response without some of its fields would surprise callers. `Pragma` has no meaning in a response.
 */
export function responseControl(cacheControl: FieldValue): ResponseControl {
  if (cacheControl === undefined) return NO_RESPONSE_DIRECTIVES;
  if (typeof cacheControl !== "string") return parsedResponse(cacheControl);
  const known = KNOWN_RESPONSE_DIRECTIVES.get(cacheControl);
  if (known !== undefined) return known;
  const control = parsedResponse(cacheControl);
  if (KNOWN_RESPONSE_DIRECTIVES.size >= KNOWN_MAX) KNOWN_RESPONSE_DIRECTIVES.clear();
  if (cacheControl.length <= KNOWN_CHARS_MAX) KNOWN_RESPONSE_DIRECTIVES.set(cacheControl, control);
  return control;
}

/** Servers send few different values, and each response is parsed. */
const KNOWN_RESPONSE_DIRECTIVES = new Map<string, ResponseControl>();
const KNOWN_MAX = 500;
const KNOWN_CHARS_MAX = 200;

function parsedResponse(cacheControl: FieldValue): ResponseControl {
  const parsed = directives(cacheControl);
  return Object.freeze({
    noStore: parsed.has("no-store"),
    noCache: parsed.has("no-cache"),
    mustRevalidate: parsed.has("must-revalidate"),
    mustUnderstand: parsed.has("must-understand"),
    immutable: parsed.has("immutable"),
    isPublic: parsed.has("public"),
    isPrivate: parsed.has("private"),
    maxAgeS: shortest(parsed.get("max-age")),
    staleIfErrorS: shortest(parsed.get("stale-if-error")) ?? 0,
    staleWhileRevalidateS: shortest(parsed.get("stale-while-revalidate")) ?? 0,
  });
}

/** Parses `delta-seconds`: digits only, no sign, fraction or unit. Undefined for any other text. */
export function deltaSeconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Math.min(Number(text), SECONDS_MAX) : undefined;
}

type DirectiveValues = readonly (string | undefined)[];

/** The values of each directive, keyed by its name in lower case; undefined for a directive without a value. */
function directives(value: FieldValue): ReadonlyMap<string, DirectiveValues> {
  const found = new Map<string, (string | undefined)[]>();
  const text = typeof value === "string" ? value : (value?.join() ?? "");
  // Spaces separate directives as commas do, because some servers forget the comma (`no-cache no-store`). Spaces around
  // `=` are not allowed, so `max-age = 60` is a max-age without a number, which counts as 0.
  const word = /([^\s,=]+)(=?)/g;
  for (let match = word.exec(text); match !== null; match = word.exec(text)) {
    const [, name = "", equals] = match;
    const key = name.toLowerCase();
    const values = found.get(key) ?? [];
    found.set(key, values);
    if (equals === "") {
      values.push(undefined);
      continue;
    }
    const argument = quoted(text, word.lastIndex) ?? unquoted(text, word.lastIndex);
    word.lastIndex = argument.end;
    values.push(argument.text);
  }
  return found;
}

interface Argument {
  readonly text: string;
  readonly end: number;
}

/**
 * Undefined when no quoted string starts here, or when it has no end: then the quote is an ordinary character, so that
 * it cannot hide a `no-store` after it. The search for a missing end runs at most once over the text, because after a
 * quote without an end no later value begins with a quote: parsing takes linear time.
 */
function quoted(text: string, start: number): Argument | undefined {
  if (text[start] !== '"') return undefined;
  let plain = "";
  let from = start + 1;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') return { text: plain + text.slice(from, at), end: at + 1 };
    if (char !== "\\") continue;
    plain += text.slice(from, at);
    from = at + 1;
    at += 1;
  }
  return undefined;
}

function unquoted(text: string, start: number): Argument {
  const boundary = /[\s,]/g;
  boundary.lastIndex = start;
  const end = boundary.exec(text)?.index ?? text.length;
  return { text: text.slice(start, end), end };
}

/** The smallest of all values of a directive. Undefined when absent; 0 when a value is not a number. */
function shortest(values: DirectiveValues | undefined, withoutValue = 0): number | undefined {
  return values?.reduce<number>(
    (least, value) => Math.min(least, value === undefined ? withoutValue : (deltaSeconds(value) ?? 0)),
    Number.POSITIVE_INFINITY,
  );
}

/** The same for a directive where a larger value is stricter. */
function longest(values: DirectiveValues | undefined): number | undefined {
  return values?.reduce<number>((most, value) => Math.max(most, deltaSeconds(value ?? "") ?? SECONDS_MAX), 0);
}

function asNoCache(pragma: FieldValue): FieldValue {
  return directives(pragma).has("no-cache") ? "no-cache" : undefined;
}

// Most requests and many responses have no directives; they share these objects.
const NO_REQUEST_DIRECTIVES = requestControl("");
const NO_RESPONSE_DIRECTIVES = responseControl("");

/** The `cache` option of WHATWG fetch. `default` follows the rules of HTTP. */
export type CacheMode = "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached";

const MODES: ReadonlySet<unknown> = new Set<CacheMode>([
  "default",
  "no-store",
  "reload",
  "no-cache",
  "force-cache",
  "only-if-cached",
]);

/** Whether fetch accepts the value. */
export function isCacheMode(value: unknown): value is CacheMode {
  return MODES.has(value);
}

/** The directives of a request that was sent with this mode. `given` are those of its headers. */
export function withCacheMode(given: RequestControl, mode: CacheMode): RequestControl {
  if (mode === "no-store") return { ...given, noStore: true };
  if (mode === "reload") return { ...given, ignoresStored: true };
  // fetch sends `max-age=0`: an immutable response is not revalidated while it is fresh (RFC 8246).
  if (mode === "no-cache") return { ...given, maxAgeS: 0 };
  if (mode === "force-cache") return { ...given, acceptsAnyAge: true };
  return mode === "only-if-cached" ? { ...given, acceptsAnyAge: true, onlyIfCached: true } : given;
}
