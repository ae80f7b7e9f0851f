/**
 * Paths of URLs as services compare them. Servers treat many spellings of a path as the same one, and a spelling must
 * never select another budget: `//cdx`, `/%63dx`, `/CDX` and `/x/../cdx` are all `/cdx`.
 */

/** Paths that are normalized already, which is nearly all of them. */
const PLAIN_PATH = /^(?:\/[a-z0-9_~!$&'()*+,=:@-][a-z0-9_~!$&'()*+,=:@.-]*)*\/?$/;

/**
 * The path without query and fragment: lower case, escapes decoded once, one slash between segments, no dot segments,
 * no slash at the end. Empty for the root.
 */
export function normalizedPath(path: string): string {
  const end = path.search(/[?#]/);
  const plain = end < 0 ? path : path.slice(0, end);
  if (PLAIN_PATH.test(plain)) return plain.endsWith("/") ? plain.slice(0, -1) : plain;
  const segments: string[] = [];
  for (const segment of decoded(plain).toLowerCase().split(/[/\\]/)) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments.map(segment => `/${segment}`).join("");
}

/**
 * A path and every path above it, longest first, without the root. A `;` ends a segment's name, as on Java servers.
 * @param maxChars longer ones are left out: a caller that looks each up would need quadratic time for a long path
 */
export function* pathsAbove(path: string, maxChars: number): Generator<string> {
  let end = path.length > maxChars ? lastSeparator(path, maxChars) : path.length;
  while (end > 0) {
    yield path.slice(0, end);
    end = lastSeparator(path, end - 1);
  }
}

function lastSeparator(path: string, from: number): number {
  return Math.max(path.lastIndexOf("/", from), path.lastIndexOf(";", from));
}

/** Decodes valid escapes of ASCII. Others stay as they are: no member of a service contains them. */
function decoded(path: string): string {
  return path.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** The two parts of `host/path`. */
export function splitAtPath(text: string): readonly [host: string, path: string | undefined] {
  const slash = text.indexOf("/");
  return slash < 0 ? [text, undefined] : [text.slice(0, slash), text.slice(slash)];
}
