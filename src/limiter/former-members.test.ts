import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { FormerMembers } from "./former-members.ts";
import { MovedPlaces } from "./moved-places.ts";

const host = "www.example.org";
const HOUR = { rates: "4/HOUR", guard_ms: 0 };
const DEFAULTS: RatelimitsOptions = { defaults: { metadata: HOUR } };
const withSuffix: RatelimitsOptions = { services: { whole: { members: ["a.example", "*.example.org"] } } };
const without: RatelimitsOptions = { services: { whole: { members: ["a.example"] } } };

function reload(gate: Gate, limits: RatelimitsOptions): void {
  gate.reload(limitPoliciesFrom({ ...DEFAULTS, ...limits }, "test"));
}

/** How many requests are granted at once. */
function burst(gate: Gate, entry: Partial<EntryRequest> = {}): number {
  let granted = 0;
  while (gate.tryEnter({ host, role: "metadata", stamp: "granted", ...entry }) !== undefined) granted += 1;
  return granted;
}

for (const [what, after] of [
  ["that is removed", {}],
  ["that keeps other members", without],
] as const)
  test(`a host that leaves the suffix of a service ${what} counts what the service has sent`, async () => {
    const { gate, time, enterNow } = gateOf({ ...DEFAULTS, ...withSuffix });
    for (let call = 0; call < 3; call += 1) enterNow({ host }).release();
    await time.advance(1000);
    reload(gate, after);
    enterNow({ host: "a.example" }).release();
    reload(gate, { ...after, global: { max_inflight: 99 } });
    assert.deepEqual(
      [burst(gate), burst(gate, { host: "other.example.org" })],
      [1, 1],
      "which host has sent is not known",
    );
    assert.equal(burst(gate, { host: "example.net" }), 4);
    await time.advance(3_599_000);
    assert.equal(burst(gate), 3);
  });

test("a host that left a service counts its units once, also after it was forgotten", async () => {
  const second = { metadata: { rates: "9/SECOND", guard_ms: 0 } };
  const { gate, time, enterNow } = gateOf({ defaults: second, ...withSuffix });
  enterNow({ host }).release();
  gate.reload(limitPoliciesFrom({ defaults: second, ...without }, "test"));
  for (let round = 0; round < 3; round += 1) {
    assert.ok(burst(gate, { weight: 8 }) <= 1);
    await time.advance(2000);
    for (let visit = 0; visit < 9; visit += 1) enterNow({ host: `h${visit}-${round}.example` }).release();
  }
  gate.reload(limitPoliciesFrom({ defaults: { metadata: { rates: "30/HOUR", guard_ms: 0 } }, ...without }, "test"));
  assert.equal(burst(gate), 30 - 1 - 24);
});

test("a host that leaves the suffix of a service counts the requests of the service in flight", async () => {
  const { gate, time, enterNow } = gateOf({ ...DEFAULTS, ...withSuffix });
  const flying = [enterNow({ host }), enterNow({ host })];
  reload(gate, without);
  assert.equal(burst(gate), 2);
  await time.advance(1000);
  for (const grant of flying) grant.release();
  await time.advance(3_599_000);
  assert.equal(burst(gate), 2, "they count from their writes");
});

test("each partition of a host that leaves the suffix of a service counts what the service has sent", () => {
  const { gate, enterNow } = gateOf({ ...DEFAULTS, ...withSuffix });
  for (let call = 0; call < 3; call += 1) enterNow({ host, partition: "one" }).release();
  gate.reload(limitPoliciesFrom({ defaults: { metadata: { ...HOUR, per: "partition" } }, ...without }, "test"));
  assert.deepEqual([burst(gate, { partition: "one" }), burst(gate, { partition: "two" })], [1, 1]);
});

const H = { metadata: HOUR };
// Called between, the host and the service that it joins have both counted the units, and the sum of both counts.
for (const [what, first, second, third] of [
  ["to another service", ["*.example.org"], [], { next: { members: ["*.example.org"], ...H } }],
  [
    "to another service while it keeps others",
    ["a.example", "*.example.org"],
    ["a.example"],
    { next: { members: ["*.example.org"], ...H } },
  ],
  [
    "to another service with its other members",
    ["a.example", "*.example.org"],
    ["a.example"],
    { next: { members: ["a.example", "*.example.org"], ...H } },
  ],
  ["to a service of one host", ["*.example.org"], [], { next: { members: [host], ...H } }],
] satisfies [string, string[], string[], RatelimitsOptions["services"]][])
  for (const isCalledBetween of what.endsWith("its other members") ? [false] : [false, true])
    test(`units count once after two reloads, from no limits of a suffix ${what}, ${isCalledBetween ? "" : "not "}called between`, async () => {
      const service = (members: string[]) => (members.length === 0 ? {} : { whole: { members, ...H } });
      const { gate, time, enterNow } = gateOf({ ...DEFAULTS, services: service(first) });
      for (let call = 0; call < 2; call += 1) enterNow({ host }).release();
      await time.advance(1000);
      reload(gate, { services: service(second) });
      if (isCalledBetween) enterNow({ host }).release();
      await time.advance(1000);
      const isKept = Object.values(third).every(({ members }) => !members.includes("a.example"));
      reload(gate, { services: { ...(isKept && service(second)), ...third } });
      assert.equal(burst(gate), isCalledBetween ? 1 : 2);
      reload(gate, { services: { ...(isKept && service(second)), ...third }, global: { max_inflight: 99 } });
      await time.advance(3_590_000);
      assert.equal(burst(gate), 0);
      await time.advance(20_000);
      assert.equal(burst(gate), 4);
    });

test("each partition of a service that gets a suffix later counts what the former service has sent", async () => {
  const per = { metadata: { ...HOUR, per: "partition" } } as const;
  const { gate, enterNow } = gateOf({ ...DEFAULTS, services: { whole: { members: ["*.example.org"], ...per } } });
  for (const partition of ["one", "one", "two"]) enterNow({ host, partition }).release();
  reload(gate, {});
  reload(gate, { services: { next: { members: ["*.example.org"], ...per } } });
  assert.deepEqual(
    ["one", "two", "three"].map(partition => burst(gate, { partition })),
    [2, 3, 4],
  );
});

test("a hold follows a suffix through two reloads", () => {
  const { gate } = gateOf({ ...DEFAULTS, services: { whole: { members: ["*.example.org"], ...H } } });
  gate.hold(host, "metadata", 60_000);
  reload(gate, {});
  reload(gate, { services: { next: { members: ["*.example.org"], ...H } } });
  assert.equal(gate.check({ host, role: "metadata" })?.retryAfterMs, 60_000);
});

test("a new host looks up once which service it has left, however many partitions that had", () => {
  const per = { metadata: { ...HOUR, per: "partition" } } as const;
  let lookups = 0;
  const limits = limitPoliciesFrom(
    { ...DEFAULTS, services: { whole: { members: ["a.example", "*.example.org"], ...per } } },
    "test",
  );
  const counting = new Proxy(limits, {
    get(target, key) {
      if (key === "route") lookups += 1;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const gate = new Gate(counting, new FakeTime());
  for (let n = 0; n < 100; n += 1)
    assert.ok(gate.tryEnter({ host, role: "metadata", partition: `${n}`, stamp: "granted" }));
  reload(gate, without);
  lookups = 0;
  for (let n = 0; n < 10; n += 1) assert.equal(burst(gate, { host: `h${n}.example.org` }), 0);
  assert.equal(lookups, 10);
});

test("a later reload does not look through all partitions for each partition of the former service", () => {
  const metadata = { ...HOUR, per: "partition" } as const;
  const services = (...members: string[]) => limitPoliciesFrom({ services: { whole: { members, metadata } } }, "test");
  const [before, between, now] = [services("a.example", "*.example.org"), services("a.example"), services("b.example")];
  const gate = new Gate(before, new FakeTime());
  for (let n = 0; n < 100; n += 1) gate.tryEnter({ host, role: "metadata", partition: `${n}`, stamp: "granted" });
  const members = new FormerMembers();
  members.reloaded(gate.roleBudgets(), before, between, 0);
  let listed = 0;
  const partitions = () => {
    listed += 1;
    return [...gate.roleBudgets()];
  };
  const noBudget = () => assert.fail("no budget takes over units");
  const moved = new MovedPlaces(now);
  members.countAgain({ before: between, now, partitions, budgetAt: noBudget, dividedAt: noBudget, nowUs: 1, moved });
  assert.ok(listed <= 1, `listed ${listed} times`);
});
