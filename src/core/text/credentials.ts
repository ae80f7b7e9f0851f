/**
 * Decides by its name whether a header, query parameter or form field carries a credential (law L13). This is the only
 * list: the cache separates responses by it, redirects drop headers by it, and output is redacted by it.
 *
 * A name is split into words at every character that is no letter, and where a capital letter follows a small one:
 * `apiKey` and `api_key` have the words api and key. A doubtful name counts as a credential, because a value that is
 * hidden without need does less harm than a secret that is shown.
 */

/** A name with one of these words is the name of a credential. */
const CREDENTIAL_WORDS: ReadonlySet<string> = new Set([
  ..."assertion bearer cookies cred credentials creds csrf dpop hmac jwt otp pass passcode passwords pw pwd".split(" "),
  ..."secrets session sid sig ticket verifier xsrf".split(" "),
]);

/** A word that ends with one of these is a credential too: `apikey`, `insttoken`, `clientsecret`, `phpsessid`. */
const CREDENTIAL_ENDINGS: readonly string[] = [
  ..."key keyid token secret password passwd passwort kennwort passe passphrase sessid sessionid".split(" "),
  ..."signature cookie credential jwt userpass dbpass".split(" "),
];

/** Words that end like a credential and are none. */
const ORDINARY_WORDS: ReadonlySet<string> = new Set(
  "donkey hockey hotkey impasse jockey monkey turkey whiskey".split(" "),
);

/** Words before `key` and `token` that make the name an ordinary one: `sort_key`, `resumptionToken`. */
const ORDINARY_BEFORE: Readonly<Record<string, readonly string[]>> = {
  key: "cache citation foreign group idempotency index object order partition primary sort surrogate".split(" "),
  token: "continuation next page resumption".split(" "),
};

/** `code` alone is the authorization code of OAuth. After any word but these it is an ordinary code: `country_code`. */
const BEFORE_SECRET_CODE: ReadonlySet<string> = new Set(
  "access activation device invitation invite login mfa pin recovery security sms user verification".split(" "),
);

/** `auth`, `oauth`, `authenticate`, `authorization`; not `author`, `coauthors`, `authority`. */
const AUTH = /auth(?!or)|authori[sz]/;

/** Vendors whose parameters `X-Amz-…` and `X-Goog-…` sign a URL. */
const SIGNING_VENDORS: ReadonlySet<string> = new Set(["amz", "goog"]);

const MAIL_WORDS: ReadonlySet<string> = new Set(["email", "emails", "mail", "mailto"]);

/** A quick test, because it runs for each header of each request: every name of a credential matches. */
const SUSPICIOUS = new RegExp(
  ["auth", "code", "saml", ...SIGNING_VENDORS, ...CREDENTIAL_WORDS, ...CREDENTIAL_ENDINGS].join("|"),
  "i",
);

/** Whether a header, query parameter or form field with this name carries a credential. The case does not matter. */
export function isCredentialName(name: string): boolean {
  if (!SUSPICIOUS.test(name)) return false;
  // Both ways: capitals that begin no word, as in `DPoP`, split a name at the wrong places.
  return isCredential(wordsOf(name)) || isCredential(wordsOf(withCapitalsSplit(name)));
}

/** Whether the value of a field with this name must not be shown: a credential or an email address. */
export function isPrivateName(name: string): boolean {
  return wordsOf(withCapitalsSplit(name)).some(word => MAIL_WORDS.has(word)) || isCredentialName(name);
}

function isCredential(words: readonly string[]): boolean {
  if (words[0] === "x" && SIGNING_VENDORS.has(words[1] ?? "")) return true;
  return words.some((word, at) => {
    if (CREDENTIAL_WORDS.has(word) || word.startsWith("saml") || AUTH.test(word)) return true;
    if (word === "code" && words.length === 1) return true;
    if (word.endsWith("code")) return BEFORE_SECRET_CODE.has(textBefore("code", word, words[at - 1]));
    const ending = ORDINARY_WORDS.has(word) ? undefined : CREDENTIAL_ENDINGS.find(end => word.endsWith(end));
    if (ending === undefined) return false;
    const before = textBefore(ending, word, words[at - 1]);
    return !ORDINARY_BEFORE[ending]?.some(ordinary => before.endsWith(ordinary));
  });
}

/** The rest of the word, or the previous word: `sort` for both `sortkey` and `sort_key`. */
function textBefore(ending: string, word: string, previous: string | undefined): string {
  return word.slice(0, -ending.length) || (previous ?? "");
}

function withCapitalsSplit(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2");
}

/** The words of a name, in lower case. */
function wordsOf(name: string): readonly string[] {
  return name.toLowerCase().match(/[a-z]+/g) ?? [];
}
