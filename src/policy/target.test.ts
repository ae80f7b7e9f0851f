import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy } from "./load.ts";
import { policyTarget } from "./target.ts";

test("a target has a port only if the policy names it; a URL without a port has that of its scheme", async () => {
  const policy = await loadPolicy({ ratelimits: { hosts: { "a.example:80": {}, "a.example:443": {} } } });
  const read = (target: string | URL) => {
    const { host, path = "" } = policyTarget(policy, target);
    return `${host}${path}`;
  };
  assert.equal(read("a.example"), "a.example");
  assert.equal(read("A.example:80/x?y"), "a.example:80/x");
  assert.equal(read("a.example:443"), "a.example:443");
  assert.equal(read("a.example:8080"), "a.example");
  assert.equal(read("http://a.example/x"), "a.example:80/x");
  assert.equal(read(new URL("https://a.example/")), "a.example:443");
  assert.equal(read("[::1]/x"), "[::1]/x");
  assert.equal(read("2001:DB8::0001"), "[2001:db8::1]");
});

test("the keys of a target are those of requests to the URL, or over https to the port", async () => {
  const policy = await loadPolicy({
    env: { A_KEY: "the-key-of-a-test" },
    mailto: "you@example.org",
    identities: {
      hosts: { "a.example": { headers: { "x-key": "{A_KEY}" }, query: { mailto: "{mailto}" } } },
    },
  });
  const keys = (target: string | URL) => {
    const { sentKeys } = policyTarget(policy, target);
    return sentKeys && [...sentKeys].sort();
  };
  for (const target of ["https://a.example", new URL("https://a.example/x"), "a.example:443"])
    assert.deepEqual(keys(target), ["A_KEY", "mailto"]);
  for (const target of ["http://a.example", new URL("http://a.example/x"), "https://a.example:8443", "a.example:8443"])
    assert.deepEqual(keys(target), ["mailto"]);
  assert.deepEqual(keys("https://a.example/x?mailto=me@example.org"), ["A_KEY"], "the parameter of the caller is kept");
  assert.deepEqual(keys(new URL("https://a.example/x?mailto=you%40example.org")), ["A_KEY", "mailto"]);
  assert.equal(keys("a.example"), undefined);
  assert.equal(keys("a.example/x"), undefined);
});

test("the last group of an IPv6 address without brackets is not a port", async () => {
  const policy = await loadPolicy({ ratelimits: { hosts: { "[::1]:1": {} } } });
  assert.equal(policyTarget(policy, "::1").host, "[::1]");
  assert.equal(policyTarget(policy, "[::1]:1").host, "[::1]:1");
});

test("the error for a text that is neither a host nor a URL does not contain its password", async () => {
  const policy = await loadPolicy();
  for (const text of ["", "not a host", "https://u:secret@bad host/", "ftp://a.example", "service:arxiv"])
    assert.throws(
      () => policyTarget(policy, text),
      (error: unknown) => error instanceof RangeError && !error.message.includes("secret"),
      text,
    );
});
