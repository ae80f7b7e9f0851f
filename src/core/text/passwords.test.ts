import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withoutCredentials, withoutQuotedCredentials } from "./passwords.ts";

test("user name and password are hidden, also in malformed addresses", () => {
  const shown: Readonly<Record<string, string>> = {
    "redis://user:secret@cache.example:6379/0": "redis://…@cache.example:6379/0",
    "redis://:secret@h": "redis://…@h",
    "redis://u:a/b@h": "redis://…@h",
    'redis://u:a"b c@h': "redis://…@h",
    "redis://u:a@b@h": "redis://…@h",
    "redis:/u:secret@h": "…@h",
    "user:secret@h": "…@h",
    "redis://u:secret": "redis://…",
    "redis://h?password=secret&cluster=true": "redis://h?password=…&cluster=true",
    "hosts.redis://u:secret@h": "hosts.redis://…@h",
  };
  for (const [text, safe] of Object.entries(shown)) assert.equal(withoutCredentials(text), safe);
});

test("texts without a password are not changed", () => {
  for (const text of [
    "api.example.org",
    "https://api.example.org/works?query=a",
    "redis://cache:6379/0?cluster=true&prefix=mine",
    "sqlite:/data/me@example/limits.db",
    "/data/me@example/limits.yaml:12",
    "C:\\data\\me@example\\limits.yaml",
    "rates:3/SECOND,count_head=false",
    "me@example.org",
  ])
    assert.equal(withoutCredentials(text), text);
});

test("no character of a password before an @ is shown, whatever the password contains", () => {
  fc.assert(
    fc.property(
      fc.stringMatching(/^[ -~]{8,20}$/),
      fc.constantFrom("redis://", "", "redis:/", "x"),
      (password, scheme) => {
        const safe = withoutCredentials(`${scheme}user:${password}@h`);
        assert.ok([`${scheme}…@h`, "…@h"].includes(safe) || (scheme === "" && safe === "…@h"), safe);
        assert.doesNotMatch(withoutQuotedCredentials(`entry ${JSON.stringify(`user:${password}@h`)} is "bad"`), /user/);
      },
    ),
  );
});

test("in a message the quoted texts are redacted, and the rest is kept", () => {
  assert.equal(
    withoutQuotedCredentials('"u:p\\"w x@h" is not a host; expected "redis://user:password@host" or a name'),
    '"…@h" is not a host; expected "redis://…@host" or a name',
  );
});
