/**
 * Removes secrets from texts that may quote a URL, a header or a body: messages of errors, reasons that operators give.
 */
import { MAY_NAME_SECRET, withoutNamedSecrets } from "./named-secrets.ts";

/** A quick test. It matches every text that one of the expressions below matches. */
const MAY_HAVE_SHAPE = /@|%40|%2540|\/\/|-----BEGIN |bearer|basic|digest|eyJ|[\w+/-]{20}/i;
const USER_INFO = /\/\/[^\s/?#]*@/g;
/** The same in a URL that was encoded once or twice, such as the value of a query parameter. */
const ENCODED_USER_INFO = /(%(?:25)?2F){2}(?:(?!%(?:25)?(?:2F|3F|23))[^\s/?#&@]){0,400}?(?:@|%(?:25)?40)/gi;
/** A password with a slash that is not escaped. The number after the colon of `//host:8080/x@y` is a port. */
const USER_PASSWORD = /\/\/[^\s/?#@:]*:(?!\d+(?:[\s/?#]|$))[^\s@]{0,200}@/g;
/** A URL that ends after the password: letters and digits after the colon are no port. `[` begins an IPv6 address. */
const PASSWORD_AS_PORT = /(\/\/[^\s/?#@:[\]]*:)(?!\d+(?!\w))(?=[a-z_-]*\d)[\w%+~-]{1,200}/gi;
/** User and password of a proxy without a scheme. */
const PROXY_PASSWORD = /(?<![\w.%+-])[\w.%+-]{1,100}:[^\s@/:"']{1,200}@(?=[\w.-]{1,253}:\d)/g;
/** The local part of an email address, also in quotes. A version such as `undici@8.1.0` is no address. */
const MAIL_NAME =
  /(?:(?<![\p{L}\p{N}_.+-])[\p{L}\p{N}_.+-]+|"[^"\r\n]{1,64}")(?:@|%40)(?=[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}|localhost(?![\w.-]))/giu;
/** The parameters of a header whose name is missing. */
const DIGEST = /\b(digest\s+)(?=(?:username|realm|nonce|uri|response)=)[^\r\n]+/gi;
/** Credentials of a header whose name is missing. */
const SCHEME = /\b(bearer|basic)(\s+|%20|\+|["'`:,\s]{1,5})([\w.~+/-]{4,}=*)/gi;
/** Words that follow in a sentence: `basic information`, `bearer token`. Each has at most 15 letters, as in English. */
const WORDS = /^[a-z]{1,15}(?:[./-][a-z]{1,15}){0,4}\.?$|^[A-Z][a-z]{1,15}\.?$|^[A-Z]{1,15}\.?$/;

/** Secrets that are recognised by their shape, without a name before them. */
const SHAPES: readonly RegExp[] = [
  // A JSON Web Token: up to five parts, the first one is JSON.
  /\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g,
  // Keys of AWS.
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  // Keys of Hugging Face, npm, PyPI and SendGrid.
  /\b(?:hf_|npm_|pypi-)[A-Za-z0-9_-]{24,}/g,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/g,
  // Keys of GitHub, GitLab, Slack, Google, and of services that begin theirs with `sk-` or `sk_live_`.
  /\b(?:gh[opsur]_|github_pat_|glpat-|xox[abprs]-|AIza|ya29\.|sk-|[prs]k_(?:live|test)_)[\w-]{16,}/g,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g,
];
/** A word that is long enough to be a key. A slash ends a word, so a path is several words. */
const LONG_WORD = /[\w+-]{32,}={0,2}/g;
/** The secret keys of AWS have 40 characters, among them slashes. */
const AWS_SECRET = /(?<![\w+/=.-])[A-Za-z0-9+][A-Za-z0-9+/]{39}(?![\w+/=.-])/g;
/** Names that people make have fewer digits, or fewer letters. */
const RANDOM_CHARACTERS_MIN = 4;

/**
 * The text without credentials, keys and email addresses: first in known places (user and password of a URL), then by the
 * names before values, then by shape. A doubtful word is removed, because a hidden word does less harm than a secret.
 */
export function redactedText(text: string): string {
  if (!MAY_NAME_SECRET.test(text) && !MAY_HAVE_SHAPE.test(text)) return text;
  const withoutUsers = text
    .replace(USER_INFO, "//…@")
    .replace(ENCODED_USER_INFO, "$1$1…@")
    .replace(USER_PASSWORD, "//…@")
    .replace(PASSWORD_AS_PORT, "$1…")
    .replace(PROXY_PASSWORD, "…@");
  let redacted = withoutNamedSecrets(withoutUsers)
    .replace(DIGEST, "$1…")
    .replace(SCHEME, (all, scheme, between, value) => (WORDS.test(value) ? all : `${scheme}${between}…`))
    .replace(MAIL_NAME, "…@");
  for (const shape of SHAPES) redacted = redacted.replace(shape, "…");
  return redacted.replace(AWS_SECRET, withoutMixed).replace(LONG_WORD, withoutRandom);
}

/** Random base64 has small letters, capital letters and digits. */
function withoutMixed(word: string): string {
  return /[a-z]/.test(word) && /[A-Z]/.test(word) && /\d/.test(word) ? "…" : word;
}

/** Random characters are letters and digits in any order; a name has few digits, and a number has no letters. */
function withoutRandom(word: string): string {
  const digits = word.match(/\d/g)?.length ?? 0;
  const letters = word.match(/[a-z]/gi)?.length ?? 0;
  return digits >= RANDOM_CHARACTERS_MIN && letters >= RANDOM_CHARACTERS_MIN ? "…" : word;
}
