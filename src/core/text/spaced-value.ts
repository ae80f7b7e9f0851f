/**
 * Decides whether the word after the name of a credential is its value: `api_key 3f9c1a`, but not `the token expired`.
 * Only a space separates them, so the shape of the word decides. A value without a digit looks like an ordinary
 * word and is not recognised.
 */
import { isCredentialName } from "./credentials.ts";
import { DOI_PREFIX } from "./doi-prefix.ts";

/** Names that are words of sentences: after them an identifier such as `PMC1234567` is no value. */
const WORDS_OF_SENTENCES: ReadonlySet<string> = new Set(
  "authorization cookie passcode passphrase password passwords secret secrets signature token".split(" "),
);
/** Names that have other meanings as well: `key`, `authenticated`, `oauth`. */
const AMBIGUOUS =
  /^(?:assertion|code|cookies|creds?|credentials?|key|pass|session|sid|sig|ticket|verifier|o?auth(?!orization$|token|key)[a-z]*)$/;

const VALUE_LENGTH_MIN = 5;
/** Words of this length with several letters and digits are values after every name of a credential. */
const LONG_LENGTH_MIN = 16;
const LONG_MIXED_MIN = 4;
const RANDOM_LENGTH_MIN = 8;
/** `password 123456`, but not `x-api-key 401`. */
const DIGITS_MIN = 6;

/** Identifiers: `W2741809807`, `PMC1234567`, `GO_0008150`. */
const IDENTIFIER = /^[A-Z]{1,8}[_:-]?\d+$/;
/** Words with digits that people write in sentences. */
const ORDINARY: readonly RegExp[] = [
  // Algorithms and encodings.
  /^(?:hmac-)?(?:sha|md|utf|base|http|ipv|rfc|oauth|hs|rs|es|ps|ed|x|aes|tls|argon|int|uint)-?\d{1,5}(?:\.\d|url|id|-gcm|-cbc)?$/i,
  // Versions, of packages and of articles too: `v2.1.0`, `undici@8.1.0`, `HTTP/1.1`, `2101.12345v2`.
  /^(?:@?[\w./-]+@|[a-z][\w-]*\/)v?\d{1,3}(?:\.\d+)*$/i,
  /^v?\d+(?:\.\d+)+(?:-[a-z]+\.?\d*|v\d+)?$/i,
  // Numbers with a unit, durations, rates: `5000ms`, `1h30m`, `10/SECOND+5000/HOUR`.
  /^[+-]?\d+(?:[.,]\d+)?(?:%|[smhdkx]|[mµn]s|[kmgt]?i?b|k?hz|min|bytes|st|nd|rd|th)$/i,
  /^(?:\d+(?:ms|[dhms])){1,4}$/,
  /^\d+\/\d*[a-z]+(?:\+\d+\/\d*[a-z]+)*$/i,
  // Dates, ORCIDs, hexadecimal numbers.
  /^(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?$/,
  /^\d{4}-\d{4}-\d{4}-\d{3}[\dX]$/,
  /^0x[\da-f]{1,8}$/i,
  // DOIs, URLs, paths, names of hosts and files, assignments, placeholders.
  new RegExp(`^(?:doi:)?${DOI_PREFIX}`, "i"),
  /^[a-z][a-z\d+.-]*:\/\//i,
  /^(?:\.{0,2}|~)\//,
  /^[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}(?::\d+)?$/i,
  /^[a-z][\w-]*=[^=]/i,
  /^\$\{?\w+$/,
];

/** `value` may have quotes around it and punctuation after it. */
export function isSpacedValue(name: string, value: string): boolean {
  const words = value.replace(/^["'`]|["'`]$/g, "").split(/\s/);
  // The value of a cookie follows its own name: `cookie "sid=3f9c1a"`.
  const start = /cookie$/i.test(name) ? /^[\w-]+=/ : /^$/;
  return words.some(word => isValue(name, word.replace(/[.:!?\]}]{1,3}$/, "").replace(start, "")));
}

function isValue(name: string, word: string): boolean {
  const digits = word.match(/\d/g)?.length ?? 0;
  if (digits === 0 || ORDINARY.some(shape => shape.test(word))) return false;
  const letters = word.match(/[a-z]/gi)?.length ?? 0;
  // A name after an encoded space: `%20api_key`.
  const bare = name.toLowerCase().replace(/^(?:20|09)(?=[a-z])/, "");
  // In `token-bucket` and `auth-service` the name of a credential is only a part of the name.
  const last = /[a-z]*$/.exec(bare)?.[0] ?? "";
  if (AMBIGUOUS.test(bare) || !isCredentialName(last)) {
    const isMixed = digits >= LONG_MIXED_MIN && letters >= LONG_MIXED_MIN;
    return (isMixed && word.length >= LONG_LENGTH_MIN && !IDENTIFIER.test(word)) || isRandom(word);
  }
  if (letters === 0) return word.length === digits && digits >= DIGITS_MIN && bare !== "token";
  return word.length >= VALUE_LENGTH_MIN && !(WORDS_OF_SENTENCES.has(bare) && IDENTIFIER.test(word));
}

/**
 * Random characters change between capitals, small letters and digits at every second character or more often. Names
 * (`Smith2020Graph`) change less often, and hashes have letters of one case.
 */
function isRandom(word: string): boolean {
  if (word.length < RANDOM_LENGTH_MIN || !/[a-z]/.test(word) || !/[A-Z]/.test(word)) return false;
  const changes = word.match(/[a-z](?=[A-Z\d])|[A-Z](?=[a-z\d])|\d(?=[A-Za-z])/g)?.length ?? 0;
  return changes * 2 >= word.length;
}
