import { isPrivateName } from "../core/text/credentials.ts";
import { DOI_PREFIX } from "../core/text/doi-prefix.ts";

/** A long text of letters and digits: a token, a signature, an encoded policy, or a name. */
const LONG_TEXT = /^(?=.*\d)(?=.*[a-z])[\w+/=.~-]{32,}$/i;
/** Words as names have them: `main`, `DNA`, `ClimateChange`. A random text changes between small and capital letters more often. */
const WORDS = "(?:[A-Z]?[a-z]|(?:[a-z]{2,})?(?:[A-Z]+[a-z]{2,})*[A-Z]*)";
/** A part of a name: words, a number, or both: `S0140673620305667`, `2020a`. */
const NAME_PART = new RegExp(`^(?:${WORDS}\\d*[a-z]?|\\d+${WORDS})$`);
const NAME_PART_CHARS_MAX = 20;
/** A name of a file or a DOI is no secret, also if a part of it is random. */
const NAME = new RegExp(String.raw`^${DOI_PREFIX}|\.(?:pdf|xml|html?|epub|docx?|txt|zip|gz)$`, "i");

/** How many levels of nested URLs are searched for secrets. A URL that is nested more deeply is hidden as a whole. */
const NESTED_MAX = 5;

/**
 * A URL for messages and files: without credentials, and with secret values in query and path replaced by `…`. A value
 * that looks like a token is hidden whatever its name is.
 */
export function redactedUrl(url: string): string {
  return redacted(url, NESTED_MAX);
}

/** @param levels how many levels of nested URLs are searched */
function redacted(url: string, levels: number): string {
  const parsed = URL.parse(url);
  if (parsed === null) return "(invalid URL)";
  if (parsed.username !== "" || parsed.password !== "") {
    parsed.username = "";
    parsed.password = "";
  }
  parsed.hash = "";
  for (const [name, value] of [...parsed.searchParams]) {
    const shown = isSecret(name, value) ? "…" : withoutNestedSecrets(value, levels);
    if (shown !== value) parsed.searchParams.set(name, shown);
  }
  parsed.pathname = redactedPath(parsed.pathname);
  return parsed.href;
}

/** `/article;jsessionid=0123` and `/proxy/https%3A%2F%2Fexample.org%2F%3Ftoken%3D0123` have parameters in the path. */
export function redactedPath(path: string): string {
  return path
    .replace(/;([^;=/]{1,100})=([^;/]*)/g, (all, name: string, value: string) =>
      isSecret(name, value) ? `;${name}=…` : all,
    )
    .replace(/(%3F|%26)([^%/]{1,100})%3D((?:(?!%26)[^/])*)/gi, (all, start: string, name: string, value: string) =>
      isSecret(name, value) ? `${start}${name}%3D…` : all,
    );
}

/** A value may be a URL with secrets of its own, such as the target of a redirect or of a search. */
function withoutNestedSecrets(value: string, levels: number): string {
  const plain = withoutFragment(value);
  if (plain === undefined) return value;
  if (levels === 0) return "…";
  const shown = redacted(value, levels - 1);
  return shown === plain ? value : shown;
}

/** Whether a URL contains something that must not be stored. */
export function hasSecret(url: string): boolean {
  const plain = withoutFragment(url);
  return plain !== undefined && redactedUrl(url) !== plain;
}

/** Undefined if the text is no http(s) URL. */
function withoutFragment(url: string): string | undefined {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return undefined;
  parsed.hash = "";
  return parsed.href;
}

function isSecret(name: string, value: string): boolean {
  return isPrivateName(name) || /^(?:policy|tk|tok|hash|h|nonce|challenge)$/i.test(name) || isOpaque(value);
}

/** Whether a value looks like a token and not like a name such as `Smith_2020_Effects_of_climate_change`. */
function isOpaque(value: string): boolean {
  if (!LONG_TEXT.test(value) || NAME.test(value)) return false;
  const parts = value.split(/[-_./~]/);
  return /^[0-9a-f]+$/i.test(parts.join("")) || !parts.every(isNamePart);
}

function isNamePart(part: string): boolean {
  return NAME_PART.test(part) && (part.length < NAME_PART_CHARS_MAX || /^(?:\d+|[a-z]+)$/i.test(part));
}
