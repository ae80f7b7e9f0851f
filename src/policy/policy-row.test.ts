import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy } from "./load.ts";
import { breakerRows, hostPolicyRows, policyRows, serviceRows } from "./policy-row.ts";
import type { Role } from "./roles.ts";

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

test("a service has one row for each role, of complete hosts and of a path", async () => {
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
    ["a.example 1/SECOND", "service part 7/SECOND", "service pair 8/SECOND", "service each 9/SECOND"],
  );
  assert.deepEqual(serviceRows(policy), [
    { name: "part", members: ["a.example/search/v2"] },
    { name: "pair", members: ["b.example", "c.example"] },
    { name: "each", members: [] },
  ]);
});

test("the shipped policy has each host and service once, also where breakers list a member of a service", async () => {
  const policy = await loadPolicy();
  const names = policyRows(policy).map(({ host, role }) => `${host} ${role}`);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
  assert.ok(names.includes("service arxiv metadata"));
});

test("a service has the breaker settings of its own entry, also where breakers list a member", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      ...alone,
      services: { plain: { members: ["a.example"] }, own: { members: ["b.example", "c.example"] } },
    },
    breakers: { ...alone, services: { own: { fail_max: 7 } }, hosts: { "c.example": { fail_max: 9 } } },
  });
  const failMax = (service: string) => policyRows(policy).find(({ host }) => host === `service ${service}`)?.failMax;
  assert.deepEqual([failMax("plain"), failMax("own")], [5, 7]);
  const ofHost = (host: string) => hostPolicyRows(policy, { host })[0]?.failMax;
  assert.deepEqual([ofHost("b.example"), ofHost("c.example")], [7, 9]);
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

test("the total of a service is not shown as the total of its member", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      extends: "none",
      services: {
        s: { members: ["a.example"], total: { rates: "3/s" }, with: { A_KEY: { total: { rates: "9/s" } } } },
      },
      hosts: { "a.example": { metadata: { rates: "2/s" } } },
    },
    identities: { hosts: { "a.example": { headers: { "x-key": "{A_KEY}" } } } },
    env: { A_KEY: "secret" },
  });
  const totals = [...policyRows(policy), ...hostPolicyRows(policy, { host: "a.example" })]
    .filter(({ role }) => role.startsWith("total"))
    .map(({ host, role, rates }) => `${host}: ${role} ${rates}`);
  assert.deepEqual(totals, [
    "a.example: total of service s 3/SECOND",
    "a.example with A_KEY: total of service s with A_KEY 9/SECOND",
    "service s: total 3/SECOND",
    "service s with A_KEY: total 9/SECOND",
    "a.example with A_KEY: total of service s with A_KEY 9/SECOND",
  ]);
});

test("limits on costs are shown behind the rates, for roles and totals", async () => {
  const hosts = {
    "a.example": {
      metadata: { rates: "2/s", costs: { credits: "100000/DAY" } },
      total: { costs: { usd_micros: ["5/s", "100/h"] } },
    },
  };
  const rows = hostPolicyRows(await loadPolicy({ ratelimits: { ...alone, hosts } }), { host: "a.example" });
  assert.deepEqual(
    rows.map(({ role, rates }) => `${role}: ${rates}`),
    [
      "metadata: 2/SECOND + credits 100000/DAY",
      "landing: 5/SECOND + 2000/HOUR",
      "artifact: 2/SECOND + 500/HOUR",
      "total: usd_micros 5/SECOND + usd_micros 100/HOUR",
    ],
  );
});

test("a host that sets one role has a row of its own for that role, and shares the others with its service", async () => {
  const ratelimits = {
    ...alone,
    hosts: { "a.example": { landing: { rates: "1/9s" } } },
    services: { s: { members: ["a.example", "b.example"] } },
  };
  const policy = await loadPolicy({ ratelimits, breakers: alone });
  const rows = hostPolicyRows(policy, { host: "a.example" });
  assert.deepEqual(
    rows.map(({ host, role }) => `${host} ${role}`),
    ["service s metadata", "a.example landing", "service s artifact"],
  );
  for (const { host, role } of rows)
    assert.equal(host, policy.ratelimits.resolved.route("a.example", role as Role).name);
});
