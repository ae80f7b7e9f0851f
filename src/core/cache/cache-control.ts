/**
 * `Cache-Control` as RFC 9111, section 5.2, has it, reduced to what a private cache acts on.
 *
 * What cannot be read counts as the strictest thing it could have meant: a cache that asks once too often is slow, one
 * that asks once too seldom is wrong.
 */

/** What a request asks of a cache. A limit that it does not set is the one that limits nothing. */
export interface RequestControl {
  readonly noStore: boolean;
  readonly noCache: boolean;
  readonly onlyIfCached: boolean;
  /** The oldest answer it takes, in seconds. Infinity when it does not say. */
  readonly maxAgeS: number;
  /** How much longer the answer must stay fresh. 0 when it does not say. */
  readonly minFreshS: number;
  /** How stale an answer may be: Infinity for a bare `max-stale`, 0 when it does not say. */
  readonly maxStaleS: number;
  /** How stale an answer may be when the server fails. 0 when it does not say. */
  readonly staleIfErrorS: number;
}

/** What a response permits a cache. `s-maxage` and `proxy-revalidate` are for shared caches, and absent here. */
export interface ResponseControl {
  readonly noStore: boolean;
  readonly noCache: boolean;
  readonly mustRevalidate: boolean;
  readonly mustUnderstand: boolean;
  readonly immutable: boolean;
  readonly isPublic: boolean;
  readonly isPrivate: boolean;
  /** In seconds. Undefined when it does not say: `Expires` may. */
  readonly maxAgeS: number | undefined;
  readonly staleIfErrorS: number;
  readonly staleWhileRevalidateS: number;
}

/** One field, or several of the same name. */
export type FieldValue = string | readonly string[] | undefined;

/** What the standard has larger numbers stand for, some 68 years. */
const SECONDS_MAX = 2 ** 31;

/**
 * @param pragma counts only where there is no `Cache-Control`: it is how a client of HTTP/1.0 says `no-cache`.
 */
export function requestControl(cacheControl: FieldValue, pragma?: FieldValue): RequestControl {
  if (cacheControl === undefined && pragma === undefined) return NO_REQUEST_DIRECTIVES;
  const parsed = directives(cacheControl ?? asNoCache(pragma));
  return Object.freeze({
    noStore: parsed.has("no-store"),
    noCache: parsed.has("no-cache"),
    onlyIfCached: parsed.has("only-if-cached"),
    maxAgeS: shortest(parsed.get("max-age")) ?? Number.POSITIVE_INFINITY,
    minFreshS: longest(parsed.get("min-fresh")) ?? 0,
    // Alone among the numbers it may stand without one, and then means "however stale".
    maxStaleS: shortest(parsed.get("max-stale"), Number.POSITIVE_INFINITY) ?? 0,
    staleIfErrorS: shortest(parsed.get("stale-if-error")) ?? 0,
  });
}

/**
 * `no-cache="set-cookie"` forbids to reuse that field alone, and is read as a plain `no-cache`: the standard lets a
 * cache do so, and a response that is served without some of its fields helps nobody. `Pragma` means nothing here.
 */
export function responseControl(cacheControl: FieldValue): ResponseControl {
  if (cacheControl === undefined) return NO_RESPONSE_DIRECTIVES;
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

/** Digits only, as `delta-seconds` are: no sign, no fraction, no unit. Undefined for anything else. */
export function deltaSeconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Math.min(Number(text), SECONDS_MAX) : undefined;
}

type DirectiveValues = readonly (string | undefined)[];

/** Every value that each directive came with, by its name in lower case; undefined where it came without. */
function directives(value: FieldValue): ReadonlyMap<string, DirectiveValues> {
  const found = new Map<string, (string | undefined)[]>();
  const text = typeof value === "string" ? value : (value?.join() ?? "");
  // Blanks part directives as commas do, because servers forget commas (`no-cache no-store`) and mean both. None may
  // stand beside the `=`, so `max-age = 60` is a max-age without a number, which is a stale one.
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
 * Undefined where no quoted string begins, or one that never ends: its quote is then an ordinary character, lest it
 * swallow a `no-store` behind it. Such a search fails once at most, as the quote it did not find is not there for the
 * next one either; so all of them together cost one reading of the text.
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

/** The strictest of a limit that came several times. Undefined when it never came; 0 when one of them is no number. */
function shortest(values: DirectiveValues | undefined, withoutValue = 0): number | undefined {
  return values?.reduce<number>(
    (least, value) => Math.min(least, value === undefined ? withoutValue : (deltaSeconds(value) ?? 0)),
    Number.POSITIVE_INFINITY,
  );
}

/** `shortest` where more is stricter. */
function longest(values: DirectiveValues | undefined): number | undefined {
  return values?.reduce<number>((most, value) => Math.max(most, deltaSeconds(value ?? "") ?? SECONDS_MAX), 0);
}

function asNoCache(pragma: FieldValue): FieldValue {
  return directives(pragma).has("no-cache") ? "no-cache" : undefined;
}

// Most requests and many responses say nothing; they share these.
const NO_REQUEST_DIRECTIVES = requestControl("");
const NO_RESPONSE_DIRECTIVES = responseControl("");
