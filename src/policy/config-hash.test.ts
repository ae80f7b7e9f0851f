import assert from "node:assert/strict";
import { test } from "node:test";
import { configHash } from "./config-hash.ts";
import { loadPolicy, type PolicySources } from "./load.ts";

const hashOf = async (sources: PolicySources) => configHash(await loadPolicy(sources));

test("equal policies have the same hash, whatever their layers and order", async () => {
  const hash = await hashOf({
    ratelimits: { hosts: { "api.example.org": { metadata: { max_delay_ms: 70, rates: "3/SECOND" } } } },
  });
  const flagged = await hashOf({ overrides: { rate: ["api.example.org:metadata=rates:3/SECOND,max_delay_ms:70"] } });
  const reordered = await hashOf({
    ratelimits: { hosts: { "API.example.org": { metadata: { rates: "3/SECOND", max_delay_ms: 70 } } } },
  });
  assert.match(hash, /^[0-9a-f]{16}$/);
  assert.equal(reordered, hash);
  assert.equal(flagged, hash);
});

test("every change of a number changes the hash", async () => {
  const plain = await hashOf({});
  const rate = await hashOf({ overrides: { rate: ["api.example.org:metadata=rates:3/SECOND"] } });
  const breaker = await hashOf({ overrides: { breaker: ["api.example.org=fail_max:2"] } });
  assert.equal(new Set([plain, rate, breaker]).size, 3);
});

test("the credentials of a store do not change the hash, its address does", async () => {
  const at = (dsn: string) => hashOf({ overrides: { rateBackend: "redis", rateDsn: dsn } });
  assert.equal(await at("redis://u:one@cache.example.org/0"), await at("redis://cache.example.org/0"));
  assert.equal(await at("redis://u:p@ss/word@cache.example.org/0"), await at("redis://cache.example.org/0"));
  assert.notEqual(await at("redis://cache.example.org/0"), await at("redis://cache.example.org/1"));
});

test("SQLite files with different paths have different hashes, whatever characters the paths have", async () => {
  const at = (dsn: string) => hashOf({ overrides: { rateBackend: "sqlite", rateDsn: dsn } });
  const paths = ["/data//a@b.db", "/data//c@b.db", "sqlite:/data//a/c@b.db", "sqlite://a/x@b.db", "sqlite://b.db"];
  assert.equal(new Set(await Promise.all(paths.map(at))).size, paths.length);
});

test("a key that selects a tier changes the hash, and its value does not", async () => {
  const hashWith = async (key: string) => configHash(await loadPolicy({ env: { NCBI_API_KEY: key } }));
  assert.equal(await hashWith("0123456789"), await hashWith("9876543210"));
  assert.notEqual(await hashWith("0123456789"), await hashWith(""));
});

test("a key that is sent to another host changes the hash, because it selects the tiers of that host", async () => {
  const tiers = { metadata: { rates: "1/SECOND" }, with: { API_KEY: { metadata: { rates: "5/SECOND" } } } };
  const hashWith = (identities: PolicySources["identities"]) =>
    hashOf({ ratelimits: { hosts: { "a.example": tiers, "b.example": tiers } }, identities, env: { API_KEY: "k" } });
  const sent = { query: { key: "{API_KEY}" } };
  const hashes = await Promise.all([
    hashWith({ hosts: { "a.example": sent } }),
    hashWith({ hosts: { "b.example": sent } }),
    hashWith({ hosts: { "a.example": { ...sent, path: "/v1" } } }),
    hashWith({ hosts: { "a.example": sent, "b.example": null } }),
  ]);
  assert.equal(new Set(hashes).size, hashes.length);
});

test("a password in a parameter of a store's address does not change the hash", async () => {
  const at = (password: string) =>
    hashOf({
      overrides: { rateBackend: "postgres", rateDsn: `postgres://db.example.org/limits?password=${password}` },
    });
  assert.equal(await at("one"), await at("two"));
});
