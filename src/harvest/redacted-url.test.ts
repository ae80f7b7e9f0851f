import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { hasSecret, redactedUrl } from "./redacted-url.ts";

test("secret values in a URL are replaced, the rest is kept", () => {
  assert.equal(redactedUrl("https://example.org/a?id=1#top"), "https://example.org/a?id=1");
  assert.equal(redactedUrl("https://me:pass@example.org/a"), "https://example.org/a");
  const signed = redactedUrl(
    "https://s3.example.org/x?X-Amz-Signature=abc&api_key=k&token=t&email=a%40example.org&n=2",
  );
  assert.doesNotMatch(signed, /abc|=k\b|=t\b|example.org&/);
  assert.match(signed, /n=2/);
  assert.equal(redactedUrl("nonsense"), "(invalid URL)");
});

test("every usual name of a secret is recognised, in the query and in the path, and opaque values by their look", () => {
  const names = [
    ...["code", "ticket", "sid", "jwt", "Policy", "Signature", "Key-Pair-Id", "jsessionid", "PHPSESSID", "auth"],
    ...["access_token", "apikey", "sig", "x-goog-signature", "casa_token", "insttoken", "password", "session"],
  ];
  for (const name of names) {
    const url = `https://example.org/a?x=1&${name}=Sesame`;
    assert.doesNotMatch(redactedUrl(url), /Sesame/, name);
    assert.ok(hasSecret(url), name);
  }
  assert.doesNotMatch(redactedUrl("https://example.org/a;jsessionid=Sesame/b"), /Sesame/);
  for (const repeats of [10, 2000])
    assert.doesNotMatch(redactedUrl(`https://example.org/a?z=${"a1B2".repeat(repeats)}`), /a1B2/);
  for (const url of [
    "https://example.org/a?id=12&page=2&doi=10.1371/journal.pone.0033693",
    "https://example.org/a?doi=10.1000.10/aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3",
    "https://api.openalex.org/works?filter=doi:10.1/a|10.1/b&per_page=100",
    "https://example.org/a;v=1/b?author=x&keywords=y",
  ])
    assert.equal(hasSecret(url), false, url);
});

test("long names of files and articles are no secrets", () => {
  for (const value of [
    "1-s2.0-S0140673620305667-main.pdf",
    "Smith_2020_Effects_of_climate_change_on.pdf",
    "/2020/03/effects-of-climate-change-on-birds",
    "Effects_of_climate_change_on_birds_2020a_v2",
    "0a9b8c7d6e5f40718293a4b5c6d7e8f9.pdf",
  ])
    assert.equal(hasSecret(`https://example.org/a?file=${value}`), false, value);
});

test("a random text is a secret in every usual alphabet", () => {
  fc.assert(
    fc.property(fc.nat(), fc.constantFrom("hex", "base64url", "uuid"), (seed, alphabet) => {
      const digest = createHash("sha512").update(String(seed)).digest();
      const hex = digest.toString("hex");
      const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
      const text = alphabet === "uuid" ? uuid : digest.toString(alphabet === "hex" ? "hex" : "base64url");
      fc.pre(/\d/.test(text) && /[a-z]/i.test(text));
      assert.ok(hasSecret(`https://example.org/a?x=${text}`), text);
    }),
  );
});

test("a URL within a URL is kept without its secrets", () => {
  const inner = "https://me:Sesame@example.org/a?token=Sesame&n=2";
  const outer = `https://web.archive.org/cdx/search/cdx?url=${encodeURIComponent(inner)}&limit=-3`;
  assert.equal(
    decodeURIComponent(decodeURIComponent(redactedUrl(outer))),
    "https://web.archive.org/cdx/search/cdx?url=https://example.org/a?token=…&n=2&limit=-3",
  );
  assert.ok(hasSecret(outer));
  assert.doesNotMatch(redactedUrl(`https://login.example.org/?a=${encodeURIComponent(outer)}`), /Sesame/);
  assert.doesNotMatch(redactedUrl(`https://proxy.example.org/to/${encodeURIComponent(inner)}`), /token%3DSesame/);
  for (const url of [
    "https://example.org/a?url=https%3A%2F%2Fexample.org%2Fb%23top&time=12:30",
    "https://example.org/to/https%3A%2F%2Fexample.org%2F%3Fpage%3D2",
  ])
    assert.equal(hasSecret(url), false, url);
});

test("secrets of deeply nested URLs are hidden without repeated work, and a URL below the fifth level as a whole", () => {
  const nested = (levels: number, last: string) => `${"https://example.org/?u=".repeat(levels)}${last}`;
  for (const levels of [1, 5, 6, 60, 20_000]) {
    const url = nested(levels, "https://example.org/?token=Sesame");
    assert.doesNotMatch(redactedUrl(url), /Sesame/, `${levels} levels`);
    assert.ok(hasSecret(url), `${levels} levels`);
  }
  assert.equal(hasSecret(nested(5, "https://example.org/?n=2")), false);
  assert.ok(hasSecret(nested(6, "https://example.org/?n=2")));
});
