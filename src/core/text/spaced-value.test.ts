import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { redactedText } from "./redaction.ts";

const SEPARATORS = [" ", "\t", "   ", " \t ", "\\t", "%20", "%09", " is ", " was  "];
const separator = fc.constantFrom(...SEPARATORS);
const around = fc.constantFrom("", "GET", "refused", "the server wanted", "failed after 3 attempts", "(");
const quote = fc.constantFrom("", '"', "'", "`");
/** At least two changes between letters and digits, as random characters have them. */
const random = fc
  .tuple(fc.stringMatching(/^[A-Za-z0-9]{1,12}$/), fc.stringMatching(/^[a-f]\d[a-f]\d[qz]$/))
  .map(([start, end]) => start + end);
const technicalName = fc.constantFrom(
  ..."api_key api-key apikey apiKey x-api-key X-ELS-Insttoken client_secret refresh-token x-auth-token s2_api_key".split(
    " ",
  ),
  "api key",
  "access token",
);
const wordName = fc.constantFrom(..."token secret password passphrase cookie signature Token PASSWORD".split(" "));

test("a value is removed that only spaces or tabs separate from the name of a credential", () => {
  fc.assert(
    fc.property(
      fc.oneof(technicalName, wordName),
      separator,
      quote,
      random,
      around,
      around,
      (name, space, q, value, before, after) => {
        const redacted = redactedText(`${before} ${name}${space}${q}${value}${q} ${after}`);
        assert.ok(!redacted.includes(value), redacted);
        assert.ok(redacted.startsWith(`${before} ${name}${space}`) && redacted.endsWith(` ${after}`), redacted);
      },
    ),
    { numRuns: 2000 },
  );
});

test("a technical name makes words with one digit, identifiers and long numbers values too", () => {
  // Names of algorithms and encodings, such as `ES256` and `oauth2`, are no values.
  const isAlgorithm = (word: string) =>
    /^(?:hmac|sha|md|utf|base|http|ipv|rfc|oauth|hs|rs|es|ps|ed|aes|tls|argon|u?int)/i.test(word);
  const value = fc.oneof(
    fc.stringMatching(/^[a-z]{4,12}\d{1,4}$/).filter(word => !isAlgorithm(word)),
    fc.stringMatching(/^[A-Z]{2,6}\d{4,12}$/).filter(word => !isAlgorithm(word)),
    fc.stringMatching(/^[3-9]\d{5,20}$/),
  );
  fc.assert(
    fc.property(technicalName, separator, value, (name, space, secret) => {
      const redacted = redactedText(`sent ${name}${space}${secret}, refused`);
      assert.equal(redacted, `sent ${name}${space}…, refused`);
    }),
    { numRuns: 1000 },
  );
});

test("a long random word is a value also after names with other meanings", () => {
  for (const name of ["key", "session", "code", "auth", "ticket", "token_id"])
    assert.equal(redactedText(`with ${name} a1b2c3d4e5f6g7h8 sent`), `with ${name} … sent`);
});

/** Words that follow the name of a credential in sentences, with and without digits. */
const ordinary = fc.oneof(
  fc.constantFrom(
    ..."expired was refused is missing of in api.example.org api2.example.org config1.yaml sha256 HS256 base64 oauth2".split(
      " ",
    ),
    ..."rfc6750 utf-8 ed25519 v2.1.0 undici@8.1.0 HTTP/1.1 undici/8.12.4 2101.12345v2 5000ms 1h30m 16MiB 10kB 3rd".split(
      " ",
    ),
    ..."10/SECOND 10/SECOND+5000/HOUR 2026-11-16 2026-11-16T20:18:57Z 20261116 401 429 4096 100% 0x1F /run/secrets/db1".split(
      " ",
    ),
    ..."../keys/a1.pem https://a1.example.org/x1 10.1234/abc.2020.12 10.1234.5/abc.12 W2741809807 PMC1234567 GO_0008150 retries=3".split(
      " ",
    ),
    ..."$TOKEN_1 $API_KEY_2 0000-0002-1825-009X".split(" "),
  ),
  fc.stringMatching(/^[a-z]{1,12}[.!?]?$/),
  fc.stringMatching(/^[1-9]\d{0,4}$/),
  fc.stringMatching(/^10\.\d{4,5}\/[a-z]{1,8}\.\d{4}\.\d{1,6}$/),
  fc.stringMatching(/^[A-Z]{2,6}\d{1,10}$/),
);
const nameInSentence = fc.oneof(
  wordName.filter(name => name !== "password" && name !== "PASSWORD"),
  fc.constantFrom(
    ..."key session code ticket auth authenticated token-bucket auth-service key-value session-store".split(" "),
  ),
  fc.constantFrom(..."sort_key resumptionToken tokens keys monkey country_code".split(" ")),
);

test("sentences that speak of tokens, keys, passwords and sessions are not changed", () => {
  fc.assert(
    fc.property(nameInSentence, ordinary, around, around, (name, word, before, after) => {
      const text = `${before} ${name} ${word} ${after}`;
      assert.equal(redactedText(text), text);
    }),
    { numRuns: 2000 },
  );
  for (const text of [
    "the token expired 5 minutes ago",
    "token 3 of 5, key 2 of 10",
    "Unexpected token 'a', \"abc123\"... is not valid JSON",
    "error code 42P01 and status code 503",
    "x-api-key 401 Unauthorized",
    "the password must have 8 characters",
    "no API key for api.elsevier.com: 20000 requests per 7 days",
  ])
    assert.equal(redactedText(text), text);
});
