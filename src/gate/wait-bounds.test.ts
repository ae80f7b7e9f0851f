/** The bound of a wait (law L4): judged again whenever news makes a waiting request later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, roleLimits } from "../../test/limiter/kit.ts";
import { storeWith } from "../../test/sharing/store-with.ts";
import { BreakerOpenError, RateLimitExceeded } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import type { Role } from "../policy/roles.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";

interface Ended {
  /** When the request was granted or refused, in ms. */
  readonly atMs: number;
  readonly retryAfterMs?: number | undefined;
}

/** Enters the gate and records when and how it ends. Grants are stamped and released at once. */
function recorderOf(time: FakeTime) {
  const nowMs = () => time.monotonicUs() / 1000;
  return (gate: Gate, request: Partial<EntryRequest> = {}): Ended[] => {
    const ended: Ended[] = [];
    const enter = async (): Promise<Grant> => gate.enter({ host, role: "metadata", ...request });
    enter().then(
      grant => {
        grant.release();
        ended.push({ atMs: nowMs() });
      },
      error => {
        assert.ok(error instanceof RateLimitExceeded, String(error));
        ended.push({ atMs: nowMs(), retryAfterMs: error.retryAfterMs });
      },
    );
    return ended;
  };
}

/** Gates that share a store, as in separate processes. */
function sharedGates(count: number, limits: RatelimitsOptions) {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const policies = limitPoliciesFrom(limits, "test");
  const gates = Array.from({ length: count }, (_, n) => new Gate(policies, time, { store: store.member(`p${n}`) }));
  return { time, gates, enter: recorderOf(time) };
}

test("a call that the limit of all processes delays beyond max_delay_ms is refused when the store says so", async () => {
  for (const [max_delay_ms, rates, retryAfterMs] of [
    [0, "4/6SECOND", 6000],
    [200, "4/HOUR", 3_600_000],
  ] as const) {
    const { time, gates, enter } = sharedGates(2, roleLimits({ rates, max_delay_ms }));
    const [first, second] = gates as [Gate, Gate];
    const granted = [first, second, first, second].map(gate => enter(gate));
    await time.advance(0);
    assert.deepEqual(granted, Array(4).fill([{ atMs: 0 }]));
    const fifth = enter(first);
    await time.advance(0);
    assert.deepEqual(fifth, [{ atMs: 0, retryAfterMs }]);
  }
});

test("maxWaitMs that is shorter than the wait for other processes fails at once, not after it", async () => {
  const { time, gates, enter } = sharedGates(2, roleLimits({ rates: "1/6SECOND" }));
  const [first, second] = gates as [Gate, Gate];
  enter(first);
  await time.advance(1000);
  const late = enter(second, { maxWaitMs: 200 });
  await time.advance(0);
  assert.deepEqual(late, [{ atMs: 1000, retryAfterMs: 5000 }]);
});

test("a waiting call is refused when another role takes the last unit of their total", async () => {
  const { gate, time } = gateOf({
    defaults: {
      metadata: { rates: "99/s", guard_ms: 0 },
      landing: { rates: "1/50ms", guard_ms: 0, max_delay_ms: 150 },
    },
    hosts: { [host]: { total: { rates: "2/DAY", guard_ms: 0 } } },
  });
  const enter = recorderOf(time);
  enter(gate, { role: "landing" });
  const waiting = enter(gate, { role: "landing" });
  await time.advance(10);
  assert.deepEqual(waiting, []);
  enter(gate, { role: "metadata" });
  await time.advance(0);
  assert.deepEqual(waiting, [{ atMs: 10, retryAfterMs: 86_400_000 - 10 }]);
});

test("a waiting call is refused when the server announces that its quota is used up for longer", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "1/s", max_delay_ms: 1100 }));
  const grant = enterNow();
  grant.written();
  const waiting = recorderOf(time)(gate);
  await time.advance(100);
  grant.recordResponse({ isThrottled: false, announced: [{ source: "x-ratelimit", remaining: 0, resetMs: 12_000 }] });
  await time.advance(0);
  assert.deepEqual(waiting, [{ atMs: 100, retryAfterMs: 12_000 }]);
});

test("a waiting call is refused when its key is held, slowed down or reloaded beyond its bound", async () => {
  const held = gateOf(roleLimits({ rates: "1/s", max_delay_ms: 1100 }));
  held.enterNow().release();
  const waiting = recorderOf(held.time)(held.gate);
  held.gate.hold(host, "metadata", 5000);
  await held.time.advance(0);
  assert.deepEqual(waiting, [{ atMs: 0, retryAfterMs: 5000 }]);

  const reloaded = gateOf(roleLimits({ rates: "1/s", max_delay_ms: 1100 }));
  reloaded.enterNow().release();
  const queued = recorderOf(reloaded.time)(reloaded.gate);
  await reloaded.time.advance(100);
  reloaded.gate.reload(limitPoliciesFrom(roleLimits({ rates: "1/5s", max_delay_ms: 1100 }), "test"));
  await reloaded.time.advance(0);
  assert.deepEqual(queued, [{ atMs: 100, retryAfterMs: 4900 }]);
});

test("of calls in several roles under one total, those that cannot start within maxWaitMs fail on arrival", async () => {
  const { gate, time } = gateOf({
    defaults: Object.fromEntries(
      ["metadata", "landing", "artifact"].map(role => [role, { rates: "10/s", guard_ms: 0 }]),
    ),
    hosts: { [host]: { total: { rates: "10/s", guard_ms: 0 } } },
  });
  const enter = recorderOf(time);
  const calls = (["metadata", "landing", "artifact"] as const).flatMap(role =>
    Array.from({ length: 20 }, () => enter(gate, { role, maxWaitMs: 5000 })),
  );
  await time.advance(60_000);
  const ends = calls.map(([end]) => end);
  const refused = ends.filter(end => end?.retryAfterMs !== undefined);
  assert.deepEqual(
    refused.map(end => end?.atMs),
    refused.map(() => 0),
  );
  assert.equal(ends.filter(end => end !== undefined && end.retryAfterMs === undefined && end.atMs <= 5000).length, 60);
});

test("a call that waits for a slot may wait longer than max_delay_ms, which bounds only its wait for rates", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "2/s", max_concurrent: 1, max_delay_ms: 200 }));
  const grant = enterNow();
  grant.written();
  const waiting = recorderOf(time)(gate);
  await time.advance(5000);
  assert.deepEqual(waiting, []);
  grant.release();
  await time.advance(0);
  assert.deepEqual(waiting, [{ atMs: 5000 }]);
});

test("a refusal and a snapshot give the wait behind callers without a bound", async () => {
  const { gate, pass, refusal, time } = gateOf(roleLimits({ rates: "3/s" }));
  for (let call = 0; call < 15; call += 1) pass();
  assert.equal(refusal().retryAfterMs, 5000);
  const [key] = gate.keySnapshots();
  assert.equal(key?.estimatedWaitMs, 5000);
  await time.advance(5000);
});

test("a call that is refused after it has joined its queue is given the time of all limits, not of the first one", async () => {
  const { gate, time } = gateOf({
    defaults: { metadata: { rates: "9/s", guard_ms: 0 }, landing: { rates: "1/s", guard_ms: 0 } },
    hosts: { [host]: { total: { rates: "4/4s", guard_ms: 0 } } },
  });
  const enter = recorderOf(time);
  const unbounded = { maxWaitMs: Number.POSITIVE_INFINITY };
  enter(gate, { role: "landing" });
  // They use up the total from 4 s to 8 s, and with the next call of `landing` from 8 s to 12 s.
  enter(gate, { weight: 4, ...unbounded });
  enter(gate, { weight: 3, ...unbounded });
  enter(gate, { role: "landing", ...unbounded });
  // Without the queues it could start after 1 s, so it is admitted. Its role admits it after 9 s, the total after 12 s.
  const refused = enter(gate, { role: "landing", maxWaitMs: 1500 });
  const waiting = enter(gate, { role: "landing", ...unbounded });
  await time.advance(20_000);
  assert.deepEqual(refused, [{ atMs: 0, retryAfterMs: 12_000 }]);
  assert.deepEqual(waiting, [{ atMs: 12_000 }]);
});

test("a refusal behind a request that started a moment late counts from its real start", async () => {
  const { gate, time, pass, refusal } = gateOf(roleLimits({ rates: "1/s" }));
  for (let call = 0; call < 3; call += 1) pass();
  assert.equal(refusal().retryAfterMs, 3000);
  await time.advance(900);
  // The request that was due after a second starts 2 ms later.
  await time.stall(102);
  assert.equal(refusal().retryAfterMs, 2000);
  assert.equal(gate.keySnapshots()[0]?.estimatedWaitMs, 2000);
  await time.advance(5000);
});

test("a neighbour that waits for its own spacing or a slot does not make a call be refused that can go in time", async () => {
  const { gate, time, enterNow } = gateOf({
    defaults: {
      metadata: { rates: "1/s", shape: "smooth", guard_ms: 0 },
      landing: { rates: "99/s", guard_ms: 0, max_delay_ms: 1000 },
    },
    hosts: { [host]: { total: { rates: "2/s", guard_ms: 0 } } },
  });
  enterNow().release();
  const enter = recorderOf(time);
  for (let call = 0; call < 5; call += 1) enter(gate, { maxWaitMs: Number.POSITIVE_INFINITY });
  const [now, later] = [enter(gate, { role: "landing" }), enter(gate, { role: "landing" })];
  await time.advance(1000);
  assert.deepEqual(now, [{ atMs: 0 }]);
  assert.deepEqual(later, [{ atMs: 1000 }]);
});

test("a call behind a request that is not written is refused when it can no longer start in time", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
  const grant = enterNow();
  const waiting = recorderOf(time)(gate, { maxWaitMs: 5000 });
  await time.advance(4000);
  assert.deepEqual(waiting, [], "written now, the first would leave room in time");
  await time.advance(1);
  assert.deepEqual(waiting, [{ atMs: 4001, retryAfterMs: 1000 }]);
  grant.release();
});

/** Each reading of the clock takes 2 ms, as on a machine that is starved. */
class SlowTime extends FakeTime {
  #reads = 0;

  override monotonicUs(): number {
    this.#reads += 1;
    return super.monotonicUs() + this.#reads * 2000;
  }
}

test("a call is refused when the request before it, granted in time, is not written in time", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
  enterNow().release();
  const first = gate.enter({ host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
  const waiting = recorderOf(time)(gate, { maxWaitMs: 2100 });
  await time.advance(1000);
  const grant = await first;
  await time.advance(100);
  assert.deepEqual(waiting, [], "written now, the first would leave room in time");
  await time.advance(2);
  assert.deepEqual(waiting, [{ atMs: 1101, retryAfterMs: 1000 }]);
  grant.release();
});

test("a refusal behind a request that is not written counts from now, however long that request takes", async () => {
  const { time, enterNow, pass, refusal } = gateOf(roleLimits({ rates: "1/s" }));
  const grant = enterNow();
  const queued = pass();
  assert.equal(refusal().retryAfterMs, 2000);
  await time.advance(3000);
  assert.equal(refusal().retryAfterMs, 2000);
  grant.release();
  await time.advance(1000);
  await queued;
});

test("a refusal counts a request that was granted as foreseen and is not written since", async () => {
  const { gate, time } = gateOf(roleLimits({ rates: "1/200ms", guard_ms: 0, max_delay_ms: 0 }));
  const unbounded = { host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY } as const;
  const first = await gate.enter(unbounded);
  const queued = [gate.enter(unbounded), gate.enter(unbounded)];
  first.written();
  await time.advance(10);
  // A further call asks for the start of the whole queue, which is kept.
  await assert.rejects(async () => gate.enter({ host, role: "metadata" }), { retryAfterMs: 590 });
  await time.advance(190);
  await queued[0];
  await time.advance(1000);
  await assert.rejects(async () => gate.enter({ host, role: "metadata" }), { retryAfterMs: 400 });
});

test("with a store a call with maxWaitMs 0 is decided by the store, however slow the process is", async () => {
  const time = new SlowTime();
  const policies = limitPoliciesFrom(roleLimits({ rates: "1/HOUR" }), "test");
  const gate = new Gate(policies, time, { store: new MemoryStore(time).member("p") });
  const [first, second] = [recorderOf(time)(gate, { maxWaitMs: 0 }), recorderOf(time)(gate, { maxWaitMs: 0 })];
  await time.advance(100);
  assert.deepEqual(
    [first[0]?.retryAfterMs, second[0]?.retryAfterMs].map(ms => ms === undefined),
    [true, false],
  );
});

/** A store that takes 20 ms for each reply. */
function slowStore(time: FakeTime): Store {
  const member = new MemoryStore(time).member("p");
  return storeWith(member, {
    exchange: (...about) => time.sleep(20).then(() => member.exchange(...about)),
    change: (name, step) => time.sleep(20).then(() => member.change(name, step)),
  });
}

test("a call that a reload moves to another budget while it waits for the store is held until all have reported", async () => {
  const time = new FakeTime();
  const enter = recorderOf(time);
  const metadata = { rates: "99/s", guard_ms: 0 };
  const pair = (...members: string[]) =>
    limitPoliciesFrom({ defaults: { metadata }, services: { pair: { members, metadata } } }, "test");
  const gate = new Gate(pair("b.example"), time, { store: slowStore(time) });
  for (let call = 0; call < 5; call += 1) {
    enter(gate, { host: "b.example" });
    await time.advance(500);
  }
  const moved = enter(gate, { maxWaitMs: 5 });
  await time.advance(2);
  gate.reload(pair("b.example", host));
  await time.advance(100);
  // What other processes have sent to the moved host is known 1.6 s after the reload.
  assert.deepEqual(moved, [{ atMs: 2502, retryAfterMs: 1600 }]);
});

test("a total that a reload adds is named as the limit until all processes have reported, not a cooldown", async () => {
  const time = new FakeTime();
  const limits = (total?: object) => {
    const metadata = { rates: "99/s", guard_ms: 0, max_delay_ms: 0 };
    return limitPoliciesFrom({ hosts: { [host]: total === undefined ? { metadata } : { metadata, total } } }, "test");
  };
  const constraint = (limit: string) => ({ kind: "window", owner: host, limit: `${limit} (shared by all processes)` });
  const gate = new Gate(limits(), time, { store: slowStore(time) });
  for (const [total, limit] of [
    [{ rates: "3/SECOND+60/MINUTE" }, "3/SECOND+60/MINUTE"],
    [{ costs: { credits: "9/DAY" } }, "credits 9/DAY"],
    [{ max_concurrent: 2 }, "max_concurrent 2"],
  ] as const) {
    await time.advance(5000);
    gate.reload(limits());
    gate.reload(limits(total));
    for (const method of ["GET", "HEAD"]) {
      const refused = { retryAfterMs: 1600, constraint: constraint(limit) };
      await assert.rejects(async () => gate.enter({ host, role: "metadata", method }), refused);
    }
  }
  gate.hold(host, "metadata", 5000);
  await assert.rejects(async () => gate.enter({ host, role: "metadata" }), {
    constraint: { kind: "cooldown", owner: host, limit: "cooldown" },
  });
});

test("with a slow store a call with maxWaitMs 0 leases its slots, units and costs one after the other", async () => {
  const time = new FakeTime();
  const store = slowStore(time);
  const metadata = { rates: "2/HOUR", costs: { credits: "2/HOUR" }, max_concurrent: 1, shared: true };
  const policies = limitPoliciesFrom(
    { hosts: { [host]: { metadata, total: { max_concurrent: 1, shared: true } } } },
    "test",
  );
  const gate = new Gate(policies, time, { store });
  const [first] = [recorderOf(time)(gate, { maxWaitMs: 0 }), await time.advance(200)];
  assert.deepEqual(first, [{ atMs: 80 }]);
  const [second] = [recorderOf(time)(gate, { maxWaitMs: 0, costs: { credits: 2 } }), await time.advance(200)];
  assert.ok((second[0]?.retryAfterMs ?? 0) > 3_500_000);
});

const CIRCUIT = { fail_max: 1, reset_timeout_s: 1 };
const CIRCUITS = { defaults: { ...CIRCUIT, roles: { metadata: CIRCUIT }, half_open: { jitter_ms: 0 } } };

test("the time in which a record of the store is read counts in the bound of the call", async () => {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p0");
  const breakerStore: Store = {
    processId: member.processId,
    processes: 2,
    exchange: (...about) => member.exchange(...about),
    read: name => time.sleep(150).then(() => member.read(name)),
    change: (name, step) => member.change(name, step),
    list: prefix => member.list(prefix),
    signals: member.signals,
    close: () => member.close(),
  };
  const breakers = new BreakerRegistry(CIRCUITS, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers, breakerStore });
  breakers.onFailure({ host, status: 500 });
  await time.advance(700);
  const late = (async () => gate.enter({ host, role: "metadata", maxWaitMs: 200 }))().catch(error => error);
  await time.advance(150);
  assert.equal(gate.waiting, 0);
  await time.advance(1000);
  const error = await late;
  assert.ok(error instanceof BreakerOpenError, String(error));
  assert.equal(error.retryAfterMs, 150);
});

test("maxBreakerWaitMs bounds the wait for all circuits and cooldowns of a call together", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry(CIRCUITS, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  breakers.onFailure({ host, status: 500 });
  const call = { host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs: 1500 } as const;
  const late = (async () => gate.enter(call))().catch(error => error);
  await time.advance(900);
  breakers.open(host, 1);
  await time.advance(0);
  assert.equal(gate.waiting, 0);
  const error = await late;
  assert.ok(error instanceof BreakerOpenError, String(error));
  assert.equal(error.retryAfterMs, 1000);
});

test("200,000 waiting calls that become late at the same moment are all refused", async () => {
  const { time, gate } = gateOf(roleLimits({ rates: "1000/SECOND", max_delay_ms: 300_000 }));
  const enter = async (): Promise<Grant> => gate.enter({ host, role: "metadata" });
  let refused = 0;
  for (let call = 0; call < 201_000; call += 1)
    void enter().catch(error => {
      assert.ok(error instanceof RateLimitExceeded, String(error));
      refused += 1;
    });
  await time.advance(0);
  assert.equal(refused, 0);
  gate.hold(host, "metadata", 600_000);
  await time.advance(0);
  assert.equal(refused, 200_000);
});

test("a call whose bound ends before an answer does not wait for it behind a call that could", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "3/s", guard_ms: 25 }));
  for (const grant of [enterNow(), enterNow(), enterNow()]) {
    grant.written();
    grant.recordResponse({ isThrottled: false });
    grant.release();
  }
  // The second window begins with a single request: a server with two buckets may reject the next one.
  const single = gate.enter({ host, role: "metadata", maxWaitMs: 60_000 });
  const enter = recorderOf(time);
  const patient = enter(gate, { maxWaitMs: 60_000 });
  const hasty = enter(gate, { maxWaitMs: 1040 });
  await time.advance(1060);
  (await single).release();
  assert.deepEqual([patient, hasty], [[{ atMs: 1025 }], [{ atMs: 1025 }]]);
});

test("a waiting call is refused when its turn passes to another role, which takes the last unit of their total", async () => {
  const limits = { rates: "3/s", guard_ms: 0, max_delay_ms: 2000 };
  const total = { rates: "4/2SECOND", guard_ms: 0 };
  const { gate, time } = gateOf({ defaults: { metadata: limits, artifact: limits }, hosts: { [host]: { total } } });
  const granted = async (role: Role, atMs: number) => {
    const grant = await gate.enter({ host, role, maxWaitMs: 60_000 });
    assert.equal(time.monotonicUs() / 1000, atMs);
    grant.written();
    return grant;
  };
  for (const role of ["metadata", "metadata", "metadata", "artifact"] as const) {
    const grant = await granted(role, 0);
    grant.recordResponse({ isThrottled: false });
    grant.release();
  }
  const enter = recorderOf(time);
  await time.advance(100);
  // At 2 s one request of each role, the second one of metadata waits for an answer, and artifact takes both units left.
  const others = [
    granted("metadata", 2000),
    granted("artifact", 2000),
    granted("artifact", 2000),
    granted("artifact", 2000),
  ];
  const waiting = enter(gate, { role: "metadata", maxWaitMs: undefined });
  await time.advance(1900);
  await Promise.all(others);
  assert.deepEqual(waiting, [{ atMs: 2000, retryAfterMs: 2000 }]);
});
