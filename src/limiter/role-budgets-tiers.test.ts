import assert from "node:assert/strict";
import { test } from "node:test";
import { Gate } from "../gate/gate.ts";
import { loadPolicy, type PolicySources } from "../policy/load.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { EntryRequest } from "./entry-request.ts";
import { LimiterEmitter } from "./limiter-emitter.ts";
import { RoleBudgets } from "./role-budgets.ts";

const HOST = "api.example.org";
const env = { K1: "key-one", K2: "key-two" };
const role = { rates: "100/SECOND", max_delay_ms: 0 };

async function limitsOf({ ratelimits, identities, ...rest }: PolicySources) {
  const policy = await loadPolicy({
    env,
    ...rest,
    ratelimits: { extends: "none", ...(ratelimits as object) },
    identities: { extends: "none", ...(identities as object) },
  });
  return policy.ratelimits.resolved;
}

/** The number of requests that are granted at once. */
function burst(gate: Gate, request: Partial<EntryRequest>): number {
  let granted = 0;
  while (gate.tryEnter({ host: HOST, role: "metadata", ...request })) granted += 1;
  return granted;
}

const UNCHANGED: readonly (readonly [title: string, sources: PolicySources, request: Partial<EntryRequest>])[] = [
  [
    "a service that has only suffixes",
    {
      ratelimits: {
        services: {
          s: {
            members: ["*.example.org"],
            metadata: role,
            total: { rates: "1/MINUTE" },
            with: { K1: { total: { rates: "2/MINUTE" } } },
          },
        },
      },
      identities: { services: { s: { headers: { "x-key": "{K1}" } } } },
    },
    {},
  ],
  [
    "a host below a suffix that has a key of its own",
    {
      ratelimits: {
        services: {
          s: {
            members: ["example.org", "*.example.org"],
            metadata: role,
            total: { rates: "1/MINUTE" },
            with: { K1: { total: { rates: "2/MINUTE" } } },
          },
        },
      },
      identities: { hosts: { [HOST]: { headers: { "x-key": "{K1}" } } } },
    },
    {},
  ],
  [
    "a service with a key whose host has another key below a path",
    {
      ratelimits: {
        services: {
          s: {
            members: [HOST],
            metadata: role,
            total: { rates: "1/MINUTE" },
            with: { K1: { total: { rates: "2/MINUTE" } }, K2: { total: { rates: "3/MINUTE" } } },
          },
        },
      },
      identities: {
        services: { s: { headers: { "x-key": "{K1}" } } },
        hosts: { [HOST]: { path: "/v2", headers: { "x-two": "{K2}" } } },
      },
    },
    { path: "/other" },
  ],
  [
    "a service with per_host whose host has a key below a path",
    {
      ratelimits: {
        services: { s: { per_host: true, metadata: role, total: { rates: "2/MINUTE" } } },
        hosts: { [HOST]: { metadata: role, with: { K1: { metadata: { rates: "90/SECOND" } } } } },
      },
      identities: { hosts: { [HOST]: { path: "/v2", headers: { "x-key": "{K1}" } } } },
    },
    { service: "s", path: "/v2/x" },
  ],
  [
    "a member path in a spelling that gets no key",
    {
      ratelimits: {
        services: {
          s: {
            members: [`${HOST}/Api`],
            metadata: role,
            total: { rates: "2/MINUTE" },
            with: { K1: { total: { rates: "3/MINUTE" } } },
          },
        },
      },
      identities: { services: { s: { headers: { "x-key": "{K1}" } } } },
    },
    { path: "/api/x" },
  ],
];

for (const [title, sources, request] of UNCHANGED)
  test(`a reload that changes nothing keeps the counts of ${title}`, async () => {
    const gate = new Gate(await limitsOf(sources), new FakeTime());
    assert.equal(burst(gate, request), 2);
    gate.reload(await limitsOf(sources));
    assert.equal(burst(gate, request), 0);
  });

const untiered = { metadata: { rates: "5/MINUTE", max_delay_ms: 0 } };
const tiered = { ...untiered, with: { K1: { metadata: { rates: "3/MINUTE" } } } };
const keyed = { hosts: { [HOST]: { headers: { "x-key": "{K1}" } } } };

test("a reload that makes a tier apply moves the host to the budget of the tier, with what was sent", async () => {
  for (const before of [
    { ratelimits: { hosts: { [HOST]: untiered } }, identities: keyed },
    { ratelimits: { hosts: { [HOST]: tiered } }, identities: keyed, env: {} },
  ]) {
    const gate = new Gate(await limitsOf(before), new FakeTime());
    const entry = { host: HOST, role: "metadata" } as const;
    for (let call = 0; call < 2; call += 1) (await gate.enter(entry)).release();
    gate.reload(await limitsOf({ ratelimits: { hosts: { [HOST]: tiered } }, identities: keyed }));
    assert.equal((await gate.enter(entry)).host, `${HOST} with K1`);
    assert.equal(burst(gate, {}), 0);
  }
});

test("a reload counts what a host sent with a key only where requests with this key are counted", async () => {
  const sources = {
    ratelimits: { hosts: { [HOST]: { ...untiered, with: { K1: { metadata: { rates: "9/MINUTE" } } } } } },
    identities: { hosts: { [HOST]: { path: "/v2", headers: { "x-key": "{K1}" } } } },
  };
  const gate = new Gate(await limitsOf(sources), new FakeTime());
  assert.equal(burst(gate, { path: "/v2" }), 9);
  gate.reload(await limitsOf(sources));
  assert.equal(burst(gate, { path: "/v2" }), 0);
  assert.equal(burst(gate, { path: "/other" }), 5);
});

test("a reload does not count what a service sent in the budget of a member that has its own", async () => {
  const sources = {
    ratelimits: {
      services: { s: { members: [HOST, "b.example.org"], metadata: { rates: "9/MINUTE", max_delay_ms: 0 } } },
      hosts: { [HOST]: untiered },
    },
  };
  const gate = new Gate(await limitsOf(sources), new FakeTime());
  assert.equal(burst(gate, { host: "b.example.org" }), 9);
  gate.reload(await limitsOf(sources));
  assert.equal(burst(gate, {}), 5);
});

test("a member that sets one role shares the other roles with its service, also with a key of its own", async () => {
  const gate = new Gate(
    await limitsOf({
      ratelimits: {
        services: { s: { members: [HOST, "b.example.org"], landing: { rates: "4/MINUTE", max_delay_ms: 0 } } },
        hosts: { [HOST]: tiered },
      },
      identities: keyed,
    }),
    new FakeTime(),
  );
  assert.equal(burst(gate, { role: "landing", host: "b.example.org" }), 4);
  assert.equal(burst(gate, { role: "landing" }), 0);
});

test("an order for a host changes the budget that its requests with a key use", async () => {
  const time = new FakeTime();
  const limits = await limitsOf({ ratelimits: { hosts: { [HOST]: tiered } }, identities: keyed });
  const roleBudgets = new RoleBudgets(limits, time, new LimiterEmitter());
  const before = roleBudgets.forHost(HOST, "metadata");
  const order = { isForced: false, reason: "test", by: "operator", untilUs: 1e9 };
  roleBudgets.setOrder(HOST, "metadata", { ...order, rates: [{ limit: 2, windowUs: 60e6 }] });
  assert.equal(roleBudgets.forHost(HOST, "metadata"), before);
  assert.deepEqual(before.policy.labels, ["2/MINUTE"]);
  assert.deepEqual(
    Array.from(roleBudgets, ({ name }) => name),
    [`${HOST} with K1`],
  );
});

test("a call without a path uses the budget of its tier, also if another path of the host has none", async () => {
  const limits = await limitsOf({
    ratelimits: {
      services: { s: { members: [HOST], metadata: role } },
      hosts: { [HOST]: tiered },
    },
    identities: {
      services: { s: { headers: { "x-key": "{K1}" } } },
      hosts: { [HOST]: { path: "/open", headers: { "x-key": null } } },
    },
  });
  const gate = new Gate(limits, new FakeTime());
  const nameAt = async (path?: string) => (await gate.enter({ host: HOST, role: "metadata", path })).host;
  assert.equal(await nameAt("/open/x"), HOST);
  assert.equal(await nameAt(), `${HOST} with K1`);
});

const two = {
  ratelimits: { hosts: { [HOST]: { ...untiered, with: { K1: { metadata: { rates: "9/MINUTE" } } } } } },
  identities: keyed,
};
const none = { sentKeys: new Set<string>() };
const withK1 = { sentKeys: new Set(["K1"]) };

test("a request that carries no key has the limits without it, although its host gets one over https", async () => {
  const gate = new Gate(await limitsOf(two), new FakeTime());
  assert.equal(burst(gate, none), 5);
  assert.equal(burst(gate, withK1), 9);
  assert.equal(burst(gate, {}), 0, "a request whose keys are not known is counted as one over https");
});

test("a reload keeps the counts of requests with and without the key apart, whatever keys it sends from now on", async () => {
  const open = { ...two, ratelimits: { hosts: { [HOST]: { ...two.ratelimits.hosts[HOST], aimd: false } } } };
  for (const now of [two, open]) {
    const gate = new Gate(await limitsOf(two), new FakeTime());
    assert.equal(burst(gate, none), 5);
    gate.reload(await limitsOf(now));
    assert.equal(burst(gate, none), 0);
    assert.equal(burst(gate, withK1), 9);
    gate.reload(await limitsOf(now));
    assert.equal(burst(gate, none), 0);
    assert.equal(burst(gate, withK1), 0);
  }
});

test("a request that was identified before a reload removes its key has the limits of the key, with what was sent", async () => {
  const gate = new Gate(await limitsOf(two), new FakeTime());
  assert.equal(burst(gate, withK1), 9);
  gate.reload(await limitsOf({ ...two, env: {} }));
  assert.equal(burst(gate, withK1), 0);
  assert.equal(burst(gate, none), 0, "requests that had the key until now are counted without it");
});

test("a request with one of two keys has the limits of that key, also after a reload", async () => {
  const both = {
    ratelimits: {
      hosts: {
        [HOST]: {
          ...untiered,
          with: { K1: { metadata: { rates: "6/MINUTE" } }, K2: { metadata: { rates: "7/MINUTE" } } },
        },
      },
    },
    identities: { hosts: { [HOST]: { headers: { "x-key": "{K1}", "x-two": "{K2}" } } } },
  };
  const gate = new Gate(await limitsOf(both), new FakeTime());
  assert.equal(burst(gate, withK1), 6);
  gate.reload(await limitsOf({ ...both, ratelimits: { ...both.ratelimits, mode: "enforce" } }));
  assert.equal(burst(gate, withK1), 0);
  assert.equal(burst(gate, {}), 7);
});

test("requests without the key are counted in a total that a reload adds", async () => {
  const gate = new Gate(await limitsOf(two), new FakeTime());
  assert.equal(burst(gate, none), 5);
  const host = { ...two.ratelimits.hosts[HOST], metadata: { rates: "50/MINUTE", max_delay_ms: 0 } };
  gate.reload(await limitsOf({ ...two, ratelimits: { hosts: { [HOST]: { ...host, total: { rates: "6/MINUTE" } } } } }));
  assert.equal(burst(gate, none), 1);
});

test("a reload that adds or removes limits with a key counts what was sent without it, and with it", async () => {
  const without = { ...two, ratelimits: { hosts: { [HOST]: untiered } } };
  const added = new Gate(await limitsOf(without), new FakeTime());
  assert.equal(burst(added, none), 5);
  added.reload(await limitsOf(two));
  assert.equal(burst(added, none), 0);
  assert.equal(burst(added, withK1), 4, "it is not known which of the five carried the key");
  const removed = new Gate(await limitsOf(two), new FakeTime());
  assert.equal(burst(removed, withK1), 9);
  removed.reload(await limitsOf(without));
  assert.equal(burst(removed, none), 0);
});

test("a waiting request keeps the limits of what it carries when a reload starts or stops sending the key", async () => {
  const unset = { ...two, env: {} };
  for (const [before, now, carried, count, name] of [
    [unset, two, none, 5, HOST],
    [two, unset, withK1, 9, `${HOST} with K1`],
  ] as const) {
    const time = new FakeTime();
    const gate = new Gate(await limitsOf(before), time);
    const request = { host: HOST, role: "metadata", stamp: "granted", ...carried } as const;
    assert.equal(burst(gate, request), count);
    const waiting = gate.enter({ ...request, maxWaitMs: 120_000 });
    gate.reload(await limitsOf(now));
    await time.advance(59_000);
    assert.equal(gate.waiting, 1);
    await time.advance(2000);
    assert.equal((await waiting).host, name);
  }
});

test("requests without the key of a suffix count where the reload puts the hosts of the suffix", async () => {
  const service = { ...untiered, with: { K1: { metadata: { rates: "9/MINUTE" } } } };
  const members = ["*.example.org"];
  const identities = { services: { s: { headers: { "x-key": "{K1}" } } } };
  const before = { ratelimits: { services: { s: { ...service, members } } }, identities };
  for (const [title, now] of [
    ["left for the defaults", { ratelimits: { defaults: untiered } }],
    ["moved to another service", { ratelimits: { services: { t: { ...untiered, members } } } }],
    ["moved to an entry of the host", { ratelimits: { hosts: { [HOST]: untiered } } }],
    [
      "moved to another service with a key",
      {
        ratelimits: { services: { t: { ...service, members } } },
        identities: { services: { t: { headers: { "x-key": "{K1}" } } } },
      },
    ],
  ] as const) {
    const inFlight = new Gate(await limitsOf(before), new FakeTime());
    assert.equal(burst(inFlight, none), 5);
    const written = new Gate(await limitsOf(before), new FakeTime());
    for (let call = 0; call < 5; call += 1)
      (await written.enter({ host: HOST, role: "metadata", stamp: "granted", ...none })).release();
    for (const gate of [inFlight, written]) {
      gate.reload(await limitsOf(now as PolicySources));
      assert.equal(burst(gate, none), 0, title);
    }
  }
});
