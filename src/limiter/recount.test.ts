import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host } from "../../test/limiter/kit.ts";
import type { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";

const METADATA = { rates: "4/min", guard_ms: 0, costs: { credits: "10/min" } };
const common: RatelimitsOptions = { hosts: { [host]: { metadata: METADATA } } };
const divided: RatelimitsOptions = { hosts: { [host]: { metadata: { ...METADATA, per: "partition" } } } };

/** How many requests of a partition are granted at once. */
function burst(gate: Gate, partition?: string): number {
  let granted = 0;
  while (gate.tryEnter({ host, role: "metadata", partition, stamp: "granted" }) !== undefined) granted += 1;
  return granted;
}

function reload(gate: Gate, limits: RatelimitsOptions): void {
  gate.reload(limitPoliciesFrom(limits, "test"));
}

test("each partition counts what was sent before its limits were divided", async () => {
  const { gate, time, enterNow } = gateOf(common);
  for (let call = 0; call < 3; call += 1) enterNow({ partition: `p${call}` }).release();
  await time.advance(1000);
  reload(gate, divided);
  assert.deepEqual([burst(gate, "a"), burst(gate, "b"), burst(gate)], [1, 1, 1]);
  await time.advance(59_000);
  assert.deepEqual([burst(gate, "a"), burst(gate, "c"), burst(gate)], [3, 4, 3]);
});

test("each partition counts the costs that were used before its limits were divided", async () => {
  const { gate, time, enterNow, refusal } = gateOf(common);
  enterNow({ costs: { credits: 8 } }).release();
  reload(gate, divided);
  assert.equal(refusal({ partition: "a", costs: { credits: 3 } }).retryAfterMs, 60_000);
  enterNow({ partition: "a", costs: { credits: 2 } }).release();
  await time.advance(60_000);
  enterNow({ partition: "b", costs: { credits: 10 } }).release();
});

test("what a service has sent counts once in its partitions, however many members and reloads it has", () => {
  const metadata = { rates: "10/min", guard_ms: 0 };
  const pair = (per: "all" | "partition", maxConcurrent = 50): RatelimitsOptions => ({
    services: { pair: { members: [host, "b.example"], metadata: { ...metadata, per, max_concurrent: maxConcurrent } } },
  });
  const { gate, enterNow } = gateOf(pair("all"));
  for (let call = 0; call < 2; call += 1) enterNow().release();
  reload(gate, pair("partition"));
  assert.equal(burst(gate, "a"), 8);
  reload(gate, pair("partition", 51));
  reload(gate, pair("partition", 52));
  assert.equal(burst(gate, "b"), 8);
});

test("what a host has sent counts in each partition of a service that it joins", async () => {
  const service = (...members: string[]): RatelimitsOptions => ({
    ...{ hosts: {}, defaults: { metadata: METADATA } },
    services: { pair: { members, metadata: { ...METADATA, per: "partition" } } },
  });
  const { gate } = gateOf(service("other.example"));
  const enter = () => gate.tryEnter({ host: "other.example", role: "metadata", partition: "a", stamp: "granted" });
  assert.ok(enter());
  assert.equal(gate.tryEnter({ host, role: "metadata", stamp: "granted" }) !== undefined, true);
  reload(gate, service("other.example", host));
  assert.deepEqual([burst(gate, "a"), burst(gate, "b")], [2, 3]);
});

test("what a service with per_host has sent to a host counts in a total that the host gets, and again with the service", () => {
  const services: RatelimitsOptions["services"] = {
    ols: { per_host: true, metadata: { rates: "4/min", guard_ms: 0 } },
  };
  const total = { rates: "3/min", guard_ms: 0 };
  const { gate } = gateOf({ services });
  const sent = (service?: string) => {
    let granted = 0;
    while (gate.tryEnter({ host, role: "metadata", service, stamp: "granted" }) !== undefined) granted += 1;
    return granted;
  };
  for (let call = 0; call < 2; call += 1) gate.tryEnter({ host, role: "metadata", service: "ols", stamp: "granted" });
  reload(gate, { services, hosts: { [host]: { total } } });
  assert.equal(sent("ols"), 1, "the total has two of three");
  reload(gate, {});
  reload(gate, { services });
  assert.equal(sent("ols"), 1, "the service has sent three of four");
});

test("partitions that a reload joins count together, and what was sent before they were divided counts", async () => {
  const { gate, enterNow } = gateOf(common);
  enterNow().release();
  reload(gate, divided);
  enterNow({ partition: "a" }).release();
  reload(gate, common);
  assert.ok(burst(gate) <= 2);
});

test("a budget that was forgotten before a reload is counted once, however many reloads follow", async () => {
  const rates = (metadata: object): RatelimitsOptions => ({
    ...{ defaults: { metadata: { guard_ms: 0, rates: "9/s" } } },
    services: { pair: { members: ["other.example", host], metadata: { guard_ms: 0, ...metadata } } },
  });
  const { gate, time, enterNow } = gateOf({ defaults: { metadata: { guard_ms: 0, rates: "9/s" } } });
  enterNow().release();
  await time.advance(2000);
  for (let visit = 0; visit < 9; visit += 1) enterNow({ host: `h${visit}.example` }).release();
  for (let times = 0; times < 3; times += 1) reload(gate, rates({ rates: "4/HOUR" }));
  assert.equal(burst(gate), 3);
});

test("a hold follows its key through reloads: to a service and back, to partitions and back", async () => {
  const service: RatelimitsOptions = { services: { pair: { members: [host], metadata: METADATA } } };
  for (const [before, between] of [
    [common, service],
    [common, divided],
    [divided, common],
  ] as const)
    for (const sent of [0, 1]) {
      const { gate, time, enterNow, refusal } = gateOf(before);
      const partition = before === divided ? undefined : "a";
      for (let call = 0; call < sent; call += 1) enterNow({ partition }).release();
      gate.hold(host, "metadata", 90_000);
      await time.advance(10_000);
      for (const [limits, leftMs] of [
        [between, 80_000],
        [before, 70_000],
      ] as const) {
        reload(gate, limits);
        const { retryAfterMs, constraint } = refusal({ partition });
        assert.deepEqual([retryAfterMs, constraint.kind], [leftMs, "cooldown"]);
        await time.advance(10_000);
      }
    }
});

test("a hold of one role does not hold the total that a reload adds", () => {
  const { gate, enterNow, refusal } = gateOf(common);
  enterNow().release();
  gate.hold(host, "metadata", 90_000);
  reload(gate, { hosts: { [host]: { metadata: METADATA, total: { rates: "9/s" } } } });
  assert.equal(refusal().retryAfterMs, 90_000);
  enterNow({ role: "artifact" }).release();
});

test("the total of a service with per_host that is removed and comes back counts what was sent before", async () => {
  const service = { per_host: true, metadata: { rates: "100/s" }, total: { rates: "5/min" } };
  const { gate, time } = gateOf({ services: { s: service } });
  const sent = (calls: number) =>
    Array.from({ length: calls }, () => {
      const grant = gate.tryEnter({ host, role: "metadata", service: "s", stamp: "granted" });
      grant?.release();
      return grant;
    }).filter(grant => grant !== undefined).length;
  assert.equal(sent(5), 5);
  await time.advance(100);
  reload(gate, {});
  reload(gate, { services: { s: service } });
  assert.equal(sent(5), 0);
});
