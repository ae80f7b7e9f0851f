import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy } from "./load.ts";
import { breakerRows, groupRows, hostPolicyRows, policyRows } from "./policy-row.ts";

const alone = { extends: "none" } as const;

test("there is a row for each role of each host, its totals, and all other hosts", async () => {
  const hosts = { "a.example": { total: { rates: "3/s", max_concurrent: 2 }, metadata: { rates: "2/s" } } };
  const policy = await loadPolicy({ ratelimits: { ...alone, hosts }, breakers: alone });
  const rows = policyRows(policy);
  assert.deepEqual(
    rows.map(({ host, role, rates }) => `${host} ${role} ${rates}`),
    [
      "(all other hosts) metadata 10/SECOND + 5000/HOUR",
      "(all other hosts) landing 5/SECOND + 2000/HOUR",
      "(all other hosts) artifact 2/SECOND + 500/HOUR",
      "a.example metadata 2/SECOND",
      "a.example landing 5/SECOND + 2000/HOUR",
      "a.example artifact 2/SECOND + 500/HOUR",
      "a.example total 3/SECOND",
    ],
  );
  assert.deepEqual(hostPolicyRows(policy, { host: "a.example" }).at(-1), {
    host: "a.example",
    role: "total",
    rates: "3/SECOND",
    maxConcurrent: 2,
    backend: "memory",
    aimd: false,
  });
});

test("a group has one row for each role, of complete hosts and of a path", async () => {
  const policy = await loadPolicy({
    breakers: alone,
    ratelimits: {
      ...alone,
      hosts: { "a.example": { metadata: { rates: "1/s" } } },
      groups: {
        part: { members: ["a.example/search/v2"], metadata: { rates: "7/s" } },
        pair: { members: ["b.example", "c.example"], metadata: { rates: "8/s" } },
        each: { per_host: true, metadata: { rates: "9/s" } },
      },
    },
  });
  assert.deepEqual(
    policyRows(policy)
      .filter(({ role }) => role === "metadata")
      .map(row => `${row.host} ${row.rates}`)
      .slice(1),
    ["a.example 1/SECOND", "group part 7/SECOND", "group pair 8/SECOND", "group each 9/SECOND"],
  );
  assert.deepEqual(groupRows(policy), [
    { name: "part", members: ["a.example/search/v2"] },
    { name: "pair", members: ["b.example", "c.example"] },
    { name: "each", members: [] },
  ]);
});

test("the shipped policy has each host and group once, also where breakers list a member of a group", async () => {
  const policy = await loadPolicy();
  const names = policyRows(policy).map(({ host, role }) => `${host} ${role}`);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
  assert.ok(names.includes("group arxiv metadata"));
});

test("a group has breaker settings only if all its hosts have the same", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      ...alone,
      groups: { same: { members: ["a.example"] }, mixed: { members: ["b.example", "c.example"] } },
    },
    breakers: { ...alone, hosts: { "c.example": { fail_max: 9, mode: "shadow" } } },
  });
  const failMax = (group: string) => policyRows(policy).find(({ host }) => host === `group ${group}`)?.failMax;
  assert.deepEqual([failMax("same"), failMax("mixed")], [5, undefined]);
});

test("breaker rows show the cap, trial calls and mode of each listed host, and each resolver", async () => {
  const policy = await loadPolicy({
    breakers: {
      ...alone,
      hosts: { "c.example": { retry_after_cap_s: 60, mode: "shadow" } },
      resolvers: { lov: { fail_max: 8 } },
    },
  });
  const rows = breakerRows(policy).filter(({ role }) => role === "artifact" || role === undefined);
  assert.deepEqual(rows, [
    {
      name: "(all other hosts)",
      role: "artifact",
      failMax: 3,
      resetS: 120,
      retryAfterCapS: 900,
      trialCalls: 2,
      mode: "enforce",
    },
    { name: "c.example", role: "artifact", failMax: 3, resetS: 120, retryAfterCapS: 60, trialCalls: 2, mode: "shadow" },
    { name: "resolver lov", failMax: 8, resetS: 60, trialCalls: 1 },
  ]);
});
