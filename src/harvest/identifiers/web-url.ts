/** URLs from users and services. */

/** Longer URLs exist, but they lead to sessions, not documents. */
const URL_CHARS_MAX = 4096;

/**
 * The canonical form of an absolute http(s) URL, without fragment; undefined for any other text. A URL with user name or
 * password is refused, because it would be written to manifests and logs.
 */
export function canonicalWebUrl(text: string | null | undefined, base?: string): string | undefined {
  if (text === null || text === undefined || text.length > URL_CHARS_MAX) return undefined;
  const url = URL.parse(text.trim(), base);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return undefined;
  if (url.username !== "" || url.password !== "" || url.hostname === "") return undefined;
  url.hash = "";
  // A character outside ASCII becomes up to nine characters.
  return url.href.length <= URL_CHARS_MAX ? url.href : undefined;
}

/**
 * User name and password of a URL, also after `https:` without slashes or with backslashes. A password may contain a slash;
 * the number after the colon of `//host:8080/x@y` is a port.
 */
const USER_INFO = /((?:https?|ftp):[\\/]*|[\\/]{2})(?:[^\\/\s]*|[^\\/\s@:]*:(?!\d+(?:[\\/\s?#]|$))[^\s@]*)@/gi;
/** The same in a URL that was percent-encoded once or twice. */
const ENCODED_USER_INFO = /((?:%(?:25)?2F){2})(?:(?!%(?:25)?2F)[^\s/@])*?(?:@|%(?:25)?40)/gi;

/** Text for messages: user names and passwords in URLs are replaced by `…`. */
export function withoutUrlPassword(text: string): string {
  return text.replace(USER_INFO, "$1…@").replace(ENCODED_USER_INFO, "$1…@");
}

/** A guess by the path of a URL; the downloaded bytes decide. */
export function kindByUrl(url: string): "pdf" | "xml" | "landing" {
  const path = URL.parse(url)?.pathname.toLowerCase() ?? "";
  if (/\.pdf$|\/pdf(?:\/|$)/.test(path)) return "pdf";
  return path.endsWith(".xml") ? "xml" : "landing";
}

/**
 * Decodes percent escapes repeatedly: `%252F` is as common in lists as `%2F`. Text without valid escapes is unchanged.
 * Undefined if five rounds are not enough, which happens only in hostile input.
 */
export function percentDecoded(text: string): string | undefined {
  let current = text;
  for (let round = 0; round < 5; round += 1) {
    const next = percentDecodedOnce(current);
    if (next === current) return current;
    current = next;
  }
  return undefined;
}

function percentDecodedOnce(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign without an escape: the text was not encoded.
    return text;
  }
}
