/** Addresses that come from outside: what users type, and what services answer. */

/** Longer ones exist, and lead to sessions rather than to documents. */
const URL_CHARS_MAX = 4096;

/**
 * The canonical spelling of an absolute http or https address without a fragment; undefined for anything else, and for
 * one that holds a user name or a password: it would end up in manifests and logs.
 */
export function canonicalWebUrl(text: string | null | undefined, base?: string): string | undefined {
  if (text === null || text === undefined || text.length > URL_CHARS_MAX) return undefined;
  const url = URL.parse(text.trim(), base);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return undefined;
  if (url.username !== "" || url.password !== "" || url.hostname === "") return undefined;
  url.hash = "";
  // Each character outside ASCII grows to nine.
  return url.href.length <= URL_CHARS_MAX ? url.href : undefined;
}

/** A text that may hold an address, for people to read: whoever wrote a password into it finds none in our files. */
export function withoutUrlPassword(text: string): string {
  return text.replace(/\/\/[^/\s]*@/g, "//…@");
}

/** What the path of an address promises; the bytes decide. */
export function kindByUrl(address: string): "pdf" | "xml" | "landing" {
  const path = URL.parse(address)?.pathname.toLowerCase() ?? "";
  if (/\.pdf$|\/pdf(?:\/|$)/.test(path)) return "pdf";
  return path.endsWith(".xml") ? "xml" : "landing";
}

/**
 * With every percent escape undone, however often it was escaped: `%252F` is as common in lists as `%2F`. What is no
 * escape stays as it is. Undefined after too many rounds, which only somebody who wants to waste our time needs.
 */
export function percentDecoded(text: string): string | undefined {
  let now = text;
  for (let round = 0; round < 5; round += 1) {
    const next = percentDecodedOnce(now);
    if (next === now) return now;
    now = next;
  }
  return undefined;
}

function percentDecodedOnce(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that begins no escape: the text was not escaped at all.
    return text;
  }
}
