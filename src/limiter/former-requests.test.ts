import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { HostLimits, RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";

const METADATA = { rates: "2/s", guard_ms: 0, max_delay_ms: 60_000 };
const common = (more: object = {}) => limitsOf({ metadata: { ...METADATA, ...more } });
const divided = (more: object = {}) => limitsOf({ metadata: { ...METADATA, per: "partition", ...more } });

function limitsOf(limits: HostLimits): RatelimitsOptions {
  return { hosts: { [host]: limits } };
}

/** Two hosts in one service. */
function serviceOf(...members: readonly string[]): RatelimitsOptions {
  return { defaults: { metadata: METADATA }, services: { pair: { members, metadata: METADATA } } };
}

function reload(gate: Gate, limits: RatelimitsOptions): void {
  gate.reload(limitPoliciesFrom(limits, "test"));
}

test("a request that is written after its partition was joined counts from its write", async () => {
  const { gate, time, enterNow, refusal } = gateOf(divided());
  const grants = [enterNow({ partition: "a" }), enterNow({ partition: "b" })];
  reload(gate, common());
  await time.advance(5000);
  assert.equal(refusal().retryAfterMs, 1000, "both count as written now");
  for (const grant of grants) grant.written();
  await time.advance(999);
  assert.equal(refusal().retryAfterMs, 1);
  await time.advance(1);
  assert.equal(gate.check({ host, role: "metadata" }), undefined);
});

test("a request that is written after its limits were divided counts from its write in each partition", async () => {
  const { gate, time, enterNow, refusal } = gateOf(common());
  const grants = [enterNow(), enterNow()];
  reload(gate, divided());
  await time.advance(5000);
  assert.equal(refusal({ partition: "a" }).retryAfterMs, 1000);
  for (const grant of grants) grant.release();
  await time.advance(999);
  for (const partition of ["a", "b"]) assert.equal(refusal({ partition }).retryAfterMs, 1);
  await time.advance(1);
  for (const partition of ["a", "b"]) enterNow({ partition }).release();
});

test("after the limits were divided, requests without a partition count in no partition", async () => {
  const { gate, time, enterNow } = gateOf(common());
  const before = enterNow();
  reload(gate, divided());
  enterNow({ partition: "a" }).release();
  const after = enterNow();
  await time.advance(1000);
  before.giveBack();
  // Granted after the reload: it is not written yet, and counts in the common budget only.
  for (let call = 0; call < 2; call += 1) enterNow({ partition: "a" }).release();
  after.release();
});

test("a request that is written after its host has joined a service, or left it, counts from its write", async () => {
  for (const [before, after] of [
    [serviceOf("other.example"), serviceOf("other.example", host)],
    [serviceOf("other.example", host), serviceOf("other.example")],
  ] as const) {
    const { gate, time, enterNow, refusal } = gateOf(before);
    const grants = [enterNow(), enterNow()];
    reload(gate, after);
    await time.advance(5000);
    assert.equal(refusal().retryAfterMs, 1000);
    for (const grant of grants) grant.release();
    await time.advance(999);
    assert.equal(refusal().retryAfterMs, 1);
    await time.advance(1);
    enterNow().release();
  }
});

test("a request in flight follows its host through several reloads, and is counted once", async () => {
  const { gate, time, enterNow, refusal } = gateOf(serviceOf("other.example"));
  const grants = [enterNow()];
  for (const members of [["other.example", host], ["other.example"], ["other.example", host]]) {
    reload(gate, serviceOf(...members));
    await time.advance(2000);
  }
  grants.push(enterNow());
  reload(gate, serviceOf("other.example"));
  await time.advance(2000);
  assert.equal(refusal().retryAfterMs, 1000);
  for (const grant of grants) grant.release();
  await time.advance(999);
  assert.equal(refusal().retryAfterMs, 1);
  await time.advance(1);
  for (let call = 0; call < 2; call += 1) enterNow().release();
  assert.ok([...gate.roleBudgets()].every(({ log, inFlight }) => log.pending + inFlight === 0));
});

test("requests in flight keep their slots in the budgets that apply to them after a reload", async () => {
  const slots = { rates: "99/s", max_concurrent: 2 };
  for (const [before, after, partition] of [
    [divided(slots), common(slots), "a"],
    [common(slots), divided(slots), undefined],
  ] as const) {
    const { gate, time, log, enterNow, pass, refusal } = gateOf(before);
    const held = [enterNow({ partition }), enterNow({ partition })];
    for (const grant of held) grant.written();
    reload(gate, after);
    assert.equal(refusal({ partition: "b" }).constraint.kind, "concurrency");
    void pass({ partition: "b" });
    await time.advance(100);
    assert.deepEqual(log, []);
    held[0]?.release();
    await time.advance(0);
    assert.deepEqual(log, [100]);
    held[1]?.release();
    assert.equal(gate.inFlight, 0);
    assert.ok([...gate.roleBudgets()].every(({ inFlight }) => inFlight === 0));
  }
});

test("the costs of a request in flight count where it is counted after a reload, with what it really used", async () => {
  const costs = (more: object = {}) => ({ rates: "99/s", costs: { credits: "10/min" }, ...more });
  const { gate, time, enterNow, refusal } = gateOf(common(costs()));
  const grant = enterNow({ costs: { credits: 4 } });
  reload(gate, divided(costs()));
  await time.advance(120_000);
  assert.ok(gate.check({ host, role: "metadata", partition: "a", costs: { credits: 7 } }));
  grant.settle({ credits: 9 });
  assert.equal(refusal({ partition: "a", costs: { credits: 2 } }).retryAfterMs, 60_000);
  enterNow({ partition: "a", costs: { credits: 1 } }).giveBack();
  grant.release();
  await time.advance(59_999);
  assert.ok(gate.check({ host, role: "metadata", partition: "b", costs: { credits: 2 } }));
  await time.advance(1);
  enterNow({ partition: "b", costs: { credits: 10 } }).release();
});

test("requests in flight of a partition and of the limits in between count in the partition that comes back", () => {
  const { gate, enterNow, refusal } = gateOf(divided());
  enterNow({ partition: "a" });
  reload(gate, common());
  enterNow({ partition: "a" });
  reload(gate, divided());
  assert.equal(refusal({ partition: "a" }).retryAfterMs, 1000);
});

test("requests of a partition in flight count when their host leaves the suffix for limits that are common", async () => {
  const metadata = { rates: "4/HOUR", max_concurrent: 3, guard_ms: 0 };
  const limits = (...members: string[]): RatelimitsOptions => ({
    defaults: { metadata },
    services: { whole: { members: ["a.example", ...members], metadata: { ...metadata, per: "partition" } } },
  });
  const entry = { host: "www.example.org" };
  const { gate, time, enterNow, refusal } = gateOf(limits("*.example.org"));
  const flying = ["one", "one", "two"].map(partition => enterNow({ ...entry, partition }));
  reload(gate, limits());
  assert.equal(refusal(entry).constraint.kind, "concurrency");
  await time.advance(1000);
  for (const grant of flying) grant.release();
  enterNow(entry).release();
  assert.equal(refusal(entry).retryAfterMs, 3_600_000, "they count from their writes");
});

test("a new host looks up once which service had its requests, however many partitions have requests in flight", () => {
  const limits = limitPoliciesFrom(
    {
      defaults: { metadata: METADATA },
      services: { whole: { members: ["a.example", "*.example.org"], metadata: { ...METADATA, per: "partition" } } },
    },
    "test",
  );
  let lookups = 0;
  const counting = new Proxy(limits, {
    get(target, key) {
      if (key === "route") lookups += 1;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const gate = new Gate(counting, new FakeTime());
  const call = (name: string, partition?: string) =>
    gate.tryEnter({ host: name, role: "metadata", ...(partition && { partition }) });
  for (let n = 0; n < 100; n += 1) assert.ok(call("www.example.org", `${n}`));
  reload(gate, { defaults: { metadata: METADATA }, services: { whole: { members: ["a.example"] } } });
  lookups = 0;
  for (let n = 0; n < 10; n += 1) assert.equal(call(`h${n}.example.org`), undefined, "the requests in flight count");
  assert.equal(lookups, 10);
});
