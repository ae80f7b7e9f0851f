import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { redactedText } from "./redaction.ts";

const NOTATIONS: Readonly<Record<string, (value: string) => string>> = {
  "a space": value => `curl -u ${value} https://a.example.org/x`,
  "several spaces": value => `curl -s -u   ${value}`,
  "nothing between flag and value": value => `curl -u${value} https://a.example.org/x`,
  "the long flag": value => `curl --user ${value} https://a.example.org/x`,
  "the long flag with an equals sign": value => `curl --user=${value} https://a.example.org/x`,
  "the flag for proxies": value => `curl -U ${value} --proxy-user ${value} x`,
  "double quotes": value => `curl -u "${value}" x`,
  "single quotes": value => `curl -u'${value}' x`,
  "a command in quotes": value => `spawn "curl -u ${value}" failed`,
  "a list of arguments": value => JSON.stringify(["curl", "-u", value, "x"]),
  "a list of arguments as Node prints it": value => `[ 'curl', '--user', '${value}', 'x' ]`,
  "JSON in JSON": value => JSON.stringify(JSON.stringify(["curl", "-u", value])),
};
const user = fc.stringMatching(/^[a-z][a-z0-9._@-]{1,12}$/);
const password = fc.stringMatching(/^[A-Za-z0-9!#$%&()*+,.;=?@^_~-]{3,20}$/).map(text => `${text}Q`);

for (const [notation, write] of Object.entries(NOTATIONS))
  test(`user and password of curl are removed: ${notation}`, () => {
    fc.assert(
      fc.property(user, password, (name, secret) => {
        const redacted = redactedText(`ran ${write(`${name}:${secret}`)} and failed`);
        assert.ok(
          !redacted.includes(secret) && redacted.startsWith("ran ") && redacted.endsWith(" and failed"),
          redacted,
        );
      }),
    );
  });

test("a password with spaces in quotes is removed to its end", () => {
  assert.equal(redactedText('curl -u "me:horse battery" x'), 'curl -u "…" x');
  assert.equal(redactedText("curl -u 'me:it\"s x' y"), "curl -u '…' y");
  assert.equal(redactedText('curl -u me:"horse battery" x'), 'curl -u …" x');
});

test("other values of these flags are kept", () => {
  for (const text of [
    "docker run -u 1000:1000 image",
    "curl -u me https://a.example.org:8080/x",
    "curl -u me: asks for the password",
    "date -u +%H:%M",
    "git push -u origin main:main",
    "tool -u https://a.example.org/x",
    "tool -u C:\\data\\x",
    "-u user: the name of the user",
    "--user-agent sets the header: name and version",
    "follow-up: see below",
  ])
    assert.equal(redactedText(text), text);
});
