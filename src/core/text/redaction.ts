/** Removes secrets from texts that may quote a URL, a header or a body: messages of errors, words of operators. */
import { isPrivateName } from "./credentials.ts";

/** A quick test. It matches every text that one of the expressions below matches. */
const SUSPICIOUS = /[=@:]|%3D|%40|-----BEGIN |bearer\s|basic\s|[\w+/-]{20}/i;
const USER_INFO = /\/\/[^\s/?#]*@/g;
/** A password with a slash that is not escaped. The number after the colon of `//host:8080/x@y` is a port. */
const USER_PASSWORD = /\/\/[^\s/?#@:]*:(?!\d+(?:[\s/?#]|$))[^\s@]{0,200}@/g;
/** The local part of an email address. A version such as `undici@8.1.0` is no address. */
const MAIL_NAME = /(?<![\w.+-])[\w.+-]+(?:@|%40)(?=[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})/gi;
const SCHEME = /\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi;
/** A name and what separates it from its value. Hosts with a port, as in `redis://auth-store:6379`, are no names. */
const NAMED =
  /(?<![\w-]|\/\/|@)((?:api |access )?[\w-]+)((?:\]|\[\d*\]|%5D|%5B\d*%5D){0,3}(?:\\?["'])?\s*(?:=>|[:=])\s*|%3D)/gi;
/** In quotes, also in those of JSON within JSON; otherwise up to the next separator. */
const VALUE = /\\["'][^"']*["']?|"[^"]*"?|'[^']*'?|[^\s&;,"'#)]+/y;
const LINE = /[^\r\n]+/y;
/** Their values may have several parameters, so the rest of the line is removed. */
const LINE_LONG: ReadonlySet<string> = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie"]);
/** In prose these words have other meanings: only `key=value` is redacted, and `code=` only in a query. */
const ORDINARY_IN_PROSE: ReadonlySet<string> = new Set(
  "assertion auth code cookies credential credentials key mail pass session sid sig ticket verifier".split(" "),
);

/** Secrets that show by their shape, without a name before them. */
const SHAPES: readonly RegExp[] = [
  // A JSON Web Token: three parts, the first one is JSON.
  /\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g,
  // Keys of AWS, GitHub, GitLab, Slack, Google, and of services that begin theirs with `sk-` or `sk_live_`.
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\b(?:gh[opsur]_|github_pat_|glpat-|xox[abprs]-|AIza|ya29\.|sk-|[prs]k_(?:live|test)_)[\w-]{16,}/g,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g,
];
/** A word that is long enough to be a key. A path is none: it is cut at its slashes. */
const LONG_WORD = /[\w+-]{32,}={0,2}/g;
/** The secret keys of AWS have 40 characters, among them slashes. */
const AWS_SECRET = /(?<![\w+/=.-])[A-Za-z0-9+][A-Za-z0-9+/]{39}(?![\w+/=.-])/g;
/** Fewer digits or letters occur in names that people have made. */
const RANDOM_CHARACTERS_MIN = 4;

/**
 * The text without credentials, keys and email addresses: first in known places (user and password of a URL), then by the
 * names before values, then by shape. A doubtful word is removed, because a hidden word does less harm than a secret.
 */
export function redactedText(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  let redacted = withoutNamedSecrets(text.replace(USER_INFO, "//…@").replace(USER_PASSWORD, "//…@"))
    .replace(SCHEME, "$1 …")
    .replace(MAIL_NAME, "…@");
  for (const shape of SHAPES) redacted = redacted.replace(shape, "…");
  return redacted.replace(AWS_SECRET, withoutMixed).replace(LONG_WORD, withoutRandom);
}

/** Random characters of base64 are of every kind. */
function withoutMixed(word: string): string {
  return /[a-z]/.test(word) && /[A-Z]/.test(word) && /\d/.test(word) ? "…" : word;
}

/** Random characters are letters and digits in any order; a name has few digits, and a number has no letters. */
function withoutRandom(word: string): string {
  const digits = word.match(/\d/g)?.length ?? 0;
  const letters = word.match(/[a-z]/gi)?.length ?? 0;
  return digits >= RANDOM_CHARACTERS_MIN && letters >= RANDOM_CHARACTERS_MIN ? "…" : word;
}

function withoutNamedSecrets(text: string): string {
  let redacted = "";
  let at = 0;
  for (const { 0: matched, 1: name = "", 2: separator = "", index } of text.matchAll(NAMED)) {
    if (index < at || !isPrivateName(name) || isProse(name.toLowerCase(), separator, text[index - 1])) continue;
    const value = LINE_LONG.has(name.toLowerCase()) ? LINE : VALUE;
    value.lastIndex = index + matched.length;
    if (!value.test(text)) continue;
    redacted += `${text.slice(at, index + matched.length)}…`;
    at = value.lastIndex;
  }
  return redacted + text.slice(at);
}

function isProse(name: string, separator: string, before: string | undefined): boolean {
  if (!ORDINARY_IN_PROSE.has(name)) return false;
  if (name === "code") return before !== "?" && before !== "&";
  return separator !== "=" && separator.toLowerCase() !== "%3d";
}
