/** Evaluates robots.txt (RFC 9309). Pure: the caller requests the file and passes status and text. */
export interface Robots {
  /** @param target a URL, or its path and query */
  allows(target: string): boolean;
  /**
   * `Crawl-delay`, which is common but not part of the standard: seconds between two requests, above 0. Undefined if
   * there is none or it is not a number. Of several the longest counts.
   */
  readonly crawlDelayS?: number | undefined;
}

/**
 * RFC 9309, section 2.5, requires that at least 500 KiB are read. A character has at least one byte. The rest is
 * ignored.
 */
const ROBOTS_CHARS_MAX = 500 * 1024;
const RULES_MAX = 10_000;

interface RobotsRule {
  readonly isAllowed: boolean;
  readonly pattern: string;
}

const ALLOW_ALL: Robots = { allows: () => true };
const DISALLOW_ALL: Robots = { allows: () => false };

/**
 * The rules for one program.
 * @param product the first word of its User-Agent: `docstokg` of `docstokg/1.0 (mailto:…)`
 * @param status after redirects; undefined if there was no response. A missing file (4xx) allows everything, a failing
 *   server (5xx, 429, no response) disallows everything.
 */
export function robotsFor(product: string, status: number | undefined, text: string): Robots {
  if (status === undefined || status >= 500) return DISALLOW_ALL;
  // A 429 says nothing about the rules, unlike the other 4xx.
  if (status === 429) return DISALLOW_ALL;
  if (status < 200 || status >= 300) return ALLOW_ALL;
  const { rules, crawlDelayS } = groupFor(product.toLowerCase(), beginningOf(text));
  return { allows: target => isAllowed(rules, pathOf(target)), crawlDelayS };
}

/** Cuts at the end of a line: a part of `Disallow: /private` could disallow everything. */
function beginningOf(text: string): string {
  return text.length <= ROBOTS_CHARS_MAX ? text : text.slice(0, text.lastIndexOf("\n", ROBOTS_CHARS_MAX) + 1);
}

interface RobotsGroup {
  readonly rules: RobotsRule[];
  crawlDelayS: number | undefined;
}

/** All groups that name the program, as one; if there are none, those for `*`. */
function groupFor(product: string, text: string): RobotsGroup {
  const own: RobotsGroup = { rules: [], crawlDelayS: undefined };
  const wildcard: RobotsGroup = { rules: [], crawlDelayS: undefined };
  let isNamed = false;
  /** Of `own` and `wildcard`, those that the next rules belong to. */
  const current = new Set<RobotsGroup>();
  let isInRules = false;
  for (const line of text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/)) {
    const [, field = "", value = ""] = /^\s*([A-Za-z-]+)\s*:\s*([^#]*)/.exec(line) ?? [];
    const name = field.toLowerCase();
    if (name === "user-agent") {
      // Consecutive names belong to one group; a name after a rule starts the next group.
      if (isInRules) current.clear();
      isInRules = false;
      const agent = productIn(value);
      if (agent === "*") current.add(wildcard);
      if (agent !== product) continue;
      current.add(own);
      isNamed = true;
    } else if (name === "crawl-delay") {
      isInRules = true;
      const delayS = /^\d{1,9}(?:\.\d{1,9})?$/.test(value.trim()) ? Number(value) : 0;
      for (const group of current) if (delayS > (group.crawlDelayS ?? 0)) group.crawlDelayS = delayS;
    } else if (name === "allow" || name === "disallow") {
      isInRules = true;
      const pattern = normalized(value.trim());
      if (pattern === "") continue;
      const rule = { isAllowed: name === "allow", pattern };
      for (const { rules } of current) if (rules.length < RULES_MAX) rules.push(rule);
    }
  }
  return isNamed ? own : wildcard;
}

/** Product names have letters, digits, `_` and `-`; some files append a version. */
function productIn(value: string): string {
  const text = value.trim();
  return text.startsWith("*") ? "*" : (/^[\w-]+/.exec(text)?.[0].toLowerCase() ?? "");
}

/** The longest matching pattern decides; among equals, `Allow`. */
function isAllowed(rules: readonly RobotsRule[], path: string): boolean {
  if (path === "/robots.txt") return true;
  let longest = -1;
  let verdict = true;
  for (const { isAllowed: allows, pattern } of rules) {
    if (pattern.length < longest || (pattern.length === longest && !allows)) continue;
    if (!matches(pattern, path)) continue;
    longest = pattern.length;
    verdict = allows;
  }
  return verdict;
}

/** `*` matches any text, a final `$` the end. Literal pieces are searched from the left, so no pattern is slow. */
function matches(pattern: string, path: string): boolean {
  const isAnchored = pattern.endsWith("$");
  const pieces = (isAnchored ? pattern.slice(0, -1) : pattern).split("*");
  const last = pieces.length - 1;
  let at = 0;
  for (const [index, piece] of pieces.entries()) {
    if (index === 0) {
      if (!path.startsWith(piece)) return false;
      at = piece.length;
    } else if (index === last && isAnchored) {
      return path.length - piece.length >= at && path.endsWith(piece);
    } else {
      const found = path.indexOf(piece, at);
      if (found === -1) return false;
      at = found + piece.length;
    }
  }
  return !isAnchored || at === path.length;
}

function pathOf(target: string): string {
  // A path may begin with two slashes, which must not count as the beginning of a host.
  const url = URL.parse(target.startsWith("/") ? `https://example.org${target}` : target, "https://example.org");
  return url === null ? "/" : normalized(`${url.pathname}${url.search}`);
}

/** Percent escapes in upper case, without escapes of unreserved characters, with escapes of non-ASCII ones. */
function normalized(text: string): string {
  return text
    .replace(/[\u0080-\uffff]+/g, characters => encodeURIComponent(characters.toWellFormed()))
    .replace(/%([0-9a-f]{2})/gi, (escaped, hex: string) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16));
      return /[A-Za-z0-9\-._~]/.test(character) ? character : escaped.toUpperCase();
    });
}
