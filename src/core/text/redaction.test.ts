import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { redactedText } from "./redaction.ts";

test("secrets are recognised by their shape, also without a name before them", () => {
  const jwt = `eyJ${"hbGciOiJIUzI1NiJ9"}.eyJzdWIiOiIxIn0.${"c2lnbmF0dXJl"}`;
  const secrets = [
    jwt,
    "AKIAIOSFODNN7EXAMPLE",
    `ghp_${"a1B2".repeat(9)}`,
    `sk-${"a1B2".repeat(9)}`,
    "0123456789abcdef0123456789abcdef",
    "3f9c1a2b-0d4e-4f6a-8b7c-1d2e3f4a5b6c",
    "reader@example.org",
    "first.last+tag@mail.example.org",
    "jürgen.müller@example.org",
    jwt.slice(0, jwt.indexOf(".")),
    `${jwt}.c2VjcmV0.dGFn`,
    `hf_${"aBcDeF".repeat(6)}`,
    `pypi-${"AgEIcHlwaS5vcmc".repeat(2)}`,
    `SG.${"aB1".repeat(7)}.${"cD2".repeat(14)}`,
    `-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----`,
  ];
  for (const secret of secrets)
    for (const text of [
      secret,
      `before ${secret} after`,
      `"${secret}",`,
      `(${secret})`,
      `https://a.example/${secret}/x`,
    ])
      assert.ok(!redactedText(text).includes(secret), redactedText(text));
});

test("a secret key of AWS is recognised, but a path of the same length is kept", () => {
  const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  assert.equal(redactedText(`signed with ${secret}, refused`), "signed with …, refused");
  assert.equal(
    redactedText("cannot read /srv/data/Papers2026/inbox/first/second"),
    "cannot read /srv/data/Papers2026/inbox/first/second",
  );
});

test("values are removed in the notations of query strings, JSON within JSON, maps and malformed URLs", () => {
  for (const [text, redacted] of [
    ["?access_token[]=hunter2&x=1", "?access_token[]=…&x=1"],
    ["?user[api_key]=hunter2", "?user[api_key]=…"],
    ["?user%5Bapi_key%5D=hunter2", "?user%5Bapi_key%5D=…"],
    [String.raw`{\"access_token\":\"hunter2\",\"x\":1}`, String.raw`{\"access_token\":…,\"x\":1}`],
    ["Map(1) { 'x-api-key' => 'hunter2' }", "Map(1) { 'x-api-key' => … }"],
    ["redis://me:hun/ter2@store:6379", "redis://…@store:6379"],
    ["of joe.hunter2%40example.org", "of …@example.org"],
    [`sk_live_${"a1B2".repeat(5)}`, "…"],
    ["next=https%3A%2F%2Fme%3Ahunter2%40store%2Fx&y=1", "next=https%3A%2F%2F…@store%2Fx&y=1"],
    ["https%253A%252F%252Fme%253Ahunter2%2540store", "https%253A%252F%252F…@store"],
    ["redis://me:hunter2", "redis://me:…"],
    ["of hunter2@localhost, refused", "of …@localhost, refused"],
    ['of "john hunter2"@example.org', "of …@example.org"],
    ["?mot_de_passe=hunter2&x=1", "?mot_de_passe=…&x=1"],
    ["?motDePasse=hunter2&x=1", "?motDePasse=…&x=1"],
    ["?login=me:hunter2&x=1", "?login=…&x=1"],
    ["?user=me%3Ahunter2&x=1", "?user=…&x=1"],
    ["cannot open /srv/token-hunter2.db", "cannot open /srv/token-….db"],
    ["cannot open /srv/secret_hunter2/list.csv", "cannot open /srv/secret_…/list.csv"],
    ["/srv/my-api_key-hunter2", "/srv/my-api_key-…"],
    ["proxy me:hunter2@10.0.0.1:3128 refused", "proxy …@10.0.0.1:3128 refused"],
    ['sent Digest username="me", realm="x", response="3f9c1a"', "sent Digest …"],
    [
      "ERR unknown command 'AUTH', with args beginning with: 'me' 'hunter' ",
      "ERR unknown command 'AUTH', with args beginning with: …",
    ],
    ["with args beginning with: '3' 'AUTH' 'me' 'hunter' ", "with args beginning with: '3' 'AUTH' …"],
    ["AUTH default hunter2 was refused", "AUTH … was refused"],
    ['cookie "visit=hunter2"', "cookie …"],
    ['{"key":"Zq7xW2mK9p","auth":"Zq7xW2mK9p"}', '{"key":…,"auth":…}'],
    ["credentials: Zq7xW2mK9p", "credentials: …"],
    ["userpass=hunter&passwort=hunter", "userpass=…&passwort=…"],
  ] as const)
    assert.equal(redactedText(text), redacted);
  const kept = "https://registry.example:8080/x/@scope/name";
  assert.equal(redactedText(kept), kept);
});

test("redaction removes a value whatever stands around it, and takes linear time", () => {
  const word = fc.stringMatching(/^[a-z ]{0,12}$/);
  fc.assert(
    fc.property(
      word,
      word,
      fc.constantFrom("api_key", "client_secret", "X-ELS-Insttoken", "refresh-token"),
      (a, b, name) => {
        assert.ok(!redactedText(`${a} ${name}=hunter2 ${b}`).includes("hunter2"));
      },
    ),
  );
  for (const hostile of [
    "a".repeat(1e5),
    "a@".repeat(5e4),
    "eyJ".repeat(3e4),
    "key=".repeat(2e4),
    "//".repeat(5e4),
    "//a:".repeat(3e4),
    "%2F%2Fa".repeat(2e4),
    "a:b".repeat(3e4),
    "a:b@".repeat(3e4),
    "AUTH ".repeat(2e4),
    "AUTH '".repeat(2e4),
    "digest a=".repeat(1e4),
    "<key>a ".repeat(1e4),
    '"a'.repeat(5e4),
    "login=a".repeat(2e4),
    "token-a1".repeat(2e4),
  ])
    assert.equal(typeof redactedText(hostile), "string");
});

test("text without secrets is not changed", () => {
  for (const text of [
    "api.example.org",
    "10/SECOND+5000/HOUR",
    "database is locked",
    "monkey=1",
    "impasse=1",
    "login=2026-11-17T10:20:00Z, user=https://a.example/x, user=me, login=failed",
    "token-bucket/src, secret_2026-11-16, token-v2.json, password_reset.html, undici@localhost-7",
    "tokens left = 3",
    "key: metadata",
    "code=ECONNREFUSED, status code: 503",
    "author=Smith&keywords=x&country_code=de&resumptionToken=a",
    "connect redis://auth-store:6379/0 failed",
    "session: closed",
    "undici@8.12.4 and @redis/client@1.2.3 failed",
    "connect token.example.org:443 and auth.example.org:6379",
    "cannot open /var/lib/docstokg/telemetry-2026-11-16/run.jsonl: EACCES",
    "unexpected_end_of_the_compressed_response_body_stream",
    "run 20261116T014500.123Z-3f9c1a of 12345678901234567890123456789012 bytes",
    "5/SECOND+300/MINUTE+5000/HOUR+100000/DAY",
    "http://host:port/x, http://[::1]:8080, (http://a.example:8080) and redis://store:6379.",
    "ERR AUTH <password> called without any password configured for the default user. Are you sure?",
    "AUTH failed with 401, NOAUTH Authentication required",
    "key: Smith2020Graph, key: 6f460b6a and key: W2741809807",
    "the digest sha256 differs, digest algorithm=MD5",
  ]) {
    assert.equal(redactedText(text), text);
  }
});

test("a name without a value does not hide the name after it", () => {
  for (const text of ["api_key=\nauthorization: Bearer x7Q", "token:\n  cookie: a=b; c=x7Q", "key= secret: x7Q"])
    assert.ok(!redactedText(text).includes("x7Q"), redactedText(text));
});
