import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy } from "./load.ts";
import { policyChanges } from "./policy-changes.ts";

const HOST = "api.example.org";
const withRates = (rates: string, sources = {}) =>
  loadPolicy({ ratelimits: { hosts: { [HOST]: { metadata: { rates } } } }, ...sources });

test("equal policies have no changes", async () => {
  assert.deepEqual(policyChanges(await withRates("1/SECOND"), await withRates("1/SECOND")), []);
});

test("each changed, added and removed value is listed with its source", async () => {
  const before = await withRates("1/SECOND", { env: { DOCSTOKG_MAX_INFLIGHT: "7" } });
  const after = await withRates("2/SECOND", { overrides: { breaker: [`${HOST}=fail_max:3`] } });
  assert.deepEqual(policyChanges(before, after), [
    {
      setting: "ratelimits.global.max_inflight",
      old: "7",
      new: "500",
      source: after.ratelimits.assignments.find(({ path }) => path[1] === "max_inflight")?.where,
    },
    {
      setting: `ratelimits.hosts.${HOST}.metadata.rates`,
      old: "1/SECOND",
      new: "2/SECOND",
      source: "policy.ratelimits",
    },
    { setting: `breakers.hosts.${HOST}.fail_max`, old: undefined, new: "3", source: "--breaker" },
  ]);
  const [, , removed] = policyChanges(after, before);
  assert.deepEqual(removed, {
    setting: `breakers.hosts.${HOST}.fail_max`,
    old: "3",
    new: undefined,
    source: "--breaker",
  });
});

test("a changed address of a store is shown without its password", async () => {
  const withDsn = (dsn: string) => loadPolicy({ ratelimits: { backend: { kind: "redis", dsn } } });
  const [change] = policyChanges(await withDsn("redis://u:old@a"), await withDsn("redis://u:new@b"));
  assert.deepEqual([change?.old, change?.new], ["redis://…@a", "redis://…@b"]);
});

test("a change at the end of a long list is listed, and shown where the values differ", async () => {
  const members = ["one", "two", "three", "four"].map(name => `${name}.long-name.example.org`);
  const withMembers = (...more: readonly string[]) =>
    loadPolicy({ ratelimits: { services: { long: { members: [...members, ...more] } } } });
  const [change, ...others] = policyChanges(await withMembers(), await withMembers("five.example.org"));
  assert.deepEqual(others, []);
  assert.deepEqual(change, {
    setting: "ratelimits.services.long.members",
    old: '…ng-name.example.org"]',
    new: '…ng-name.example.org","five.example.org"]',
    source: "policy.ratelimits",
  });
});

test("a changed password of a store is a change, and neither password is shown", async () => {
  const withDsn = (dsn: string) => loadPolicy({ ratelimits: { backend: { kind: "redis", dsn } } });
  const [change] = policyChanges(await withDsn("redis://u:old@a"), await withDsn("redis://u:new@a"));
  assert.deepEqual([change?.old, change?.new], ["redis://…@a", "redis://…@a"]);
});
