import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { makeIdentity } from "./certificate.ts";

const nowMs = Date.UTC(2026, 10, 16, 12);
const hosts = ["a.example", ...Array.from({ length: 300 }, (_, number) => `host-${number}.example`)];

test("the certificate names every host, is signed by the authority and matches its key", () => {
  const identity = makeIdentity(hosts, nowMs);
  const authority = new X509Certificate(identity.ca);
  const certificate = new X509Certificate(identity.cert);
  assert.ok(certificate.verify(authority.publicKey) && certificate.checkIssued(authority));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(identity.key)));
  assert.deepEqual([authority.ca, certificate.ca], [true, false]);
  for (const host of hosts) assert.equal(certificate.checkHost(host), host);
  assert.equal(certificate.checkHost("b.example"), undefined);
  assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
});

test("the certificate is valid from the day before, for a week", () => {
  const { validFrom, validTo } = new X509Certificate(makeIdentity(hosts, nowMs).cert);
  assert.deepEqual([Date.parse(validFrom), Date.parse(validTo)], [nowMs - 86_400_000, nowMs + 7 * 86_400_000]);
});

test("two identities have different keys", () => {
  assert.notEqual(makeIdentity(["a.example"], nowMs).key, makeIdentity(["a.example"], nowMs).key);
});
