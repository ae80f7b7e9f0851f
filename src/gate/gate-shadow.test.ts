import assert from "node:assert/strict";
import { test } from "node:test";
import type { BreakerEvent } from "../breaker/breaker-events.ts";
import { BreakerOpenError, RateLimitExceeded } from "../errors.ts";
import type { Grant } from "../limiter/grant.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";

const HOST = "a.example";
const LIMITS = { rates: "2/SECOND", guard_ms: 0, max_delay_ms: 500 };

function gateOf(limits: RatelimitsOptions, breakers: BreakersOptions = {}, isShared = false) {
  const time = new FakeTime();
  const events: (LimiterEvent | BreakerEvent)[] = [];
  const listener = (event: LimiterEvent | BreakerEvent) => {
    events.push(event);
  };
  const registry = new BreakerRegistry(breakers, { time, random: () => 0, listener });
  const store = isShared ? new MemoryStore(time).member("p") : undefined;
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { breakers: registry, listener, store });
  const send = async (host = HOST): Promise<Grant> => {
    const grant = await gate.enter({ host, role: "metadata" });
    grant.written();
    return grant;
  };
  const eventsOf = (type: string) => events.filter(({ event_type }) => event_type === type);
  return { time, gate, registry, send, eventsOf };
}

for (const isShared of [false, true]) {
  test(`in shadow mode no request waits, and what enforcing would have done is emitted${isShared ? ", with a store too" : ""}`, async () => {
    const { time, send, eventsOf } = gateOf({ mode: "shadow", defaults: { metadata: LIMITS } }, {}, isShared);
    for (let n = 0; n < 2; n += 1) (await send()).release();
    await time.advance(600);
    (await send()).release();
    (await send()).release();
    await time.advance(100);
    const last = await send();
    assert.equal(last.waitedMs, 0);
    last.release();
    assert.deepEqual(
      eventsOf("ratelimit.shadow").map(event => "would" in event && [event.would, event.wait_ms, event.constraint]),
      [
        ["wait", 400, "2/SECOND of a.example"],
        ["wait", 400, "2/SECOND of a.example"],
        ["refuse", 900, "2/SECOND of a.example"],
      ],
    );
    assert.equal(time.monotonicUs(), 700_000, "no request waited");
  });
}

test("in shadow mode a missing slot is reported as a wait of unknown length", async () => {
  const { send, eventsOf } = gateOf({ mode: "shadow", defaults: { metadata: { ...LIMITS, max_concurrent: 1 } } });
  const first = await send();
  const second = await send();
  const [event] = eventsOf("ratelimit.shadow");
  assert.deepEqual(event, {
    event_type: "ratelimit.shadow",
    key: HOST,
    role: "metadata",
    would: "wait",
    wait_ms: undefined,
    constraint: "max_concurrent 1 of a.example",
  });
  first.release();
  second.release();
});

test("one host can be in shadow mode while the others are enforced, and the other way round", async () => {
  const one = gateOf({
    defaults: { metadata: { ...LIMITS, max_delay_ms: 0 } },
    hosts: { [HOST]: { metadata: { mode: "shadow" } } },
  });
  for (let n = 0; n < 3; n += 1) (await one.send()).release();
  for (let n = 0; n < 2; n += 1) (await one.send("b.example")).release();
  await assert.rejects(one.send("b.example"), RateLimitExceeded);
  const all = gateOf({
    mode: "shadow",
    defaults: { metadata: { ...LIMITS, max_delay_ms: 0 } },
    hosts: { [HOST]: { metadata: { mode: "enforce" } } },
  });
  for (let n = 0; n < 2; n += 1) (await all.send()).release();
  await assert.rejects(all.send(), RateLimitExceeded);
});

test("a circuit in shadow mode opens and closes, and refuses no call", async () => {
  const circuit = { fail_max: 2, reset_timeout_s: 10 };
  const { time, send, eventsOf, registry } = gateOf(
    { defaults: { metadata: { ...LIMITS, rates: "1000/s" } } },
    {
      mode: "shadow",
      defaults: { ...circuit, roles: { metadata: circuit } },
      advanced: { adaptive_reset: { enabled: false } },
    },
  );
  const end = (grant: Grant, isWell: boolean) => {
    grant.report({ outcome: isWell ? { kind: "success" } : { kind: "failure", cause: "status", throttled: false } });
    grant.release();
  };
  for (let n = 0; n < 2; n += 1) end(await send(), false);
  assert.equal(registry.state(HOST).state, "open");
  await time.advance(4000);
  end(await send(), false);
  assert.deepEqual(eventsOf("breaker_shadow"), [
    { event_type: "breaker_shadow", host: HOST, role: "metadata", reason: "failures", remaining_ms: 6000 },
  ]);
  assert.equal(registry.check({ host: HOST }), undefined, "check() denies nothing in shadow mode either");
  await time.advance(6000);
  end(await send(), true);
  assert.equal(registry.state(HOST).state, "closed");
});

test("breakers are enforced while limits are in shadow mode", async () => {
  const { send, registry } = gateOf({ mode: "shadow", defaults: { metadata: LIMITS } });
  registry.open(HOST, 60);
  await assert.rejects(send(), BreakerOpenError);
});

test("a request in shadow mode that has waited for a cooldown is not delayed or refused by a limit", async () => {
  const limits = { rates: "1/HOUR", guard_ms: 0, max_delay_ms: 10_000 };
  const { time, send, registry, eventsOf } = gateOf({ mode: "shadow", defaults: { metadata: limits } });
  (await send()).release();
  registry.onFailure({ host: HOST, status: 429, retryAfterMs: 2000 });
  const grants = [1, 2, 3].map(async () => {
    const grant = await send();
    grant.report({ outcome: { kind: "success" }, status: 200 });
    grant.release();
    return grant.wait.waitedMs;
  });
  await time.advance(10_000);
  assert.deepEqual(await Promise.all(grants), [2000, 2000, 2000]);
  assert.equal(eventsOf("ratelimit.shadow").length, 3, "enforcing would have refused each of them");
});

test("in shadow mode a success ends a cooldown if its request was sent after the cooldown began", async () => {
  const { send, registry } = gateOf({ defaults: { metadata: { ...LIMITS, rates: "1000/s" } } }, { mode: "shadow" });
  const [asked, before] = [await send(), await send()];
  asked.report({ outcome: { kind: "failure", cause: "status", throttled: true }, retryAfterMs: 60_000 });
  assert.equal(registry.state(HOST).state, "open");
  before.report({ outcome: { kind: "success" } });
  assert.equal(registry.state(HOST).state, "open");
  const later = await send();
  later.report({ outcome: { kind: "success" } });
  assert.equal(registry.state(HOST).state, "closed");
  for (const grant of [asked, before, later]) grant.release();
});

test("in shadow mode tryEnter grants and reports, and check refuses nothing", () => {
  const { gate, eventsOf } = gateOf({ mode: "shadow", defaults: { metadata: { ...LIMITS, rates: "1/HOUR" } } });
  for (let call = 0; call < 2; call += 1) {
    assert.equal(gate.check({ host: HOST, role: "metadata" }), undefined);
    const grant = gate.tryEnter({ host: HOST, role: "metadata" });
    assert.ok(grant);
    grant.release();
  }
  assert.equal(eventsOf("ratelimit.shadow").length, 1);
  assert.equal(gate.keySnapshots()[0]?.refused, 0);
});

test("in shadow mode a missing slot would refuse a call with maxWaitMs 0, and delay one with max_delay_ms 0", async () => {
  const metadata = { ...LIMITS, max_concurrent: 1, max_delay_ms: 0 };
  const { gate, send, eventsOf } = gateOf({ mode: "shadow", defaults: { metadata } });
  await send();
  await send();
  await gate.enter({ host: HOST, role: "metadata", maxWaitMs: 0 });
  gate.tryEnter({ host: HOST, role: "metadata" });
  const verdicts = eventsOf("ratelimit.shadow").map(event => "would" in event && event.would);
  assert.deepEqual(verdicts, ["wait", "refuse", "refuse"]);
});

test("in shadow mode a weight or cost above the limit, or a unit that no limit counts, is sent", async () => {
  const metadata = { ...LIMITS, costs: { credits: "5/DAY" } };
  const { gate, eventsOf } = gateOf({ mode: "shadow", defaults: { metadata } });
  const refused = () =>
    eventsOf("ratelimit.shadow").filter(event => "would" in event && event.would === "refuse").length;
  for (const [request, refusals] of [
    [{ costs: { tokens: 3 } }, 0],
    [{ weight: 5 }, 1],
    [{ costs: { credits: 6 } }, 2],
  ] as const) {
    (await gate.enter({ host: HOST, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY, ...request })).release();
    assert.equal(refused(), refusals);
  }
  await assert.rejects(async () => gate.enter({ host: HOST, role: "metadata", weight: 0.5 }), RangeError);
});
