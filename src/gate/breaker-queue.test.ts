import assert from "node:assert/strict";
import { test } from "node:test";
import { host, plain } from "../../test/breaker/kit.ts";
import { storeWith } from "../../test/sharing/store-with.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import type { RateLimitExceeded } from "../errors.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";
import { breakersOf } from "./registry-breakers.ts";

test("a change of a breaker without waiting calls causes no warning", async () => {
  const warnings: Error[] = [];
  const record = (warning: Error) => warnings.push(warning);
  process.on("warning", record);
  const time = new FakeTime();
  const breakers = new BreakerRegistry(plain, { time });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  const grant = gate.enter({ host, role: "metadata" }) as Grant;
  grant.report({ outcome: outcomeOfResponse({ status: 503 }), status: 503 });
  grant.release();
  breakers.close(host);
  await new Promise(resolve => setImmediate(resolve));
  process.off("warning", record);
  assert.deepEqual(warnings, []);
});

/** A gate whose rate is used up for an hour, and a call that waits for the circuit of its host. */
function blockedGate(maxWaitMs: number) {
  const time = new FakeTime();
  const options = { ...plain, defaults: { ...plain.defaults, fail_max: 1, reset_timeout_s: 1, roles: {} } };
  const breakers = new BreakerRegistry(options, { time, random: () => 0 });
  const metadata = { rates: "1/HOUR", guard_ms: 0, max_delay_ms: 0 };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time, { breakers });
  const ended: string[] = [];
  breakers.onFailure({ host, status: 500 });
  const wait = () =>
    void (gate.enter({ host, role: "metadata", maxWaitMs }) as Promise<Grant>).then(
      () => ended.push(`granted at ${time.monotonicUs() / 1000}`),
      error => ended.push(`${error.name} at ${time.monotonicUs() / 1000}: ${error.retryAfterMs}`),
    );
  return { time, breakers, ended, wait };
}

test("a call that waits for a circuit is refused when an operator opens its host for longer than it may wait", async () => {
  const { time, breakers, ended, wait } = blockedGate(5000);
  wait();
  await time.advance(300);
  breakers.open(host, 60);
  await time.advance(0);
  assert.deepEqual(ended, ["BreakerOpenError at 300: 60000"]);
});

test("a call that waits for a circuit is refused when its host goes into a cooldown that is longer than it may wait", async () => {
  const { time, breakers, ended, wait } = blockedGate(5000);
  wait();
  await time.advance(300);
  breakers.onFailure({ host, status: 429, retryAfterMs: 20_000 });
  await time.advance(0);
  assert.deepEqual(ended, ["BreakerOpenError at 300: 20000"]);
});

test("a call behind a used-up rate is refused when the circuit that it waits for opens for longer than it may wait", async () => {
  const time = new FakeTime();
  const defaults = { fail_max: 1, reset_timeout_s: 2, roles: {}, half_open: { jitter_ms: 0 } };
  const breakers = new BreakerRegistry({ ...plain, defaults }, { time, random: () => 0 });
  const limits = { defaults: { metadata: { rates: "2/3SECOND", guard_ms: 0 } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { breakers });
  const enter = (maxWaitMs: number) => gate.enter({ host, role: "metadata", maxWaitMs });
  const first = enter(0) as Grant;
  first.report({ outcome: outcomeOfResponse({ status: 500 }), status: 500 });
  first.release();
  const ended: string[] = [];
  const probe = enter(5000) as Promise<Grant>;
  const waiting = enter(3500) as Promise<Grant>;
  waiting.catch(error => ended.push(`${error.name} at ${time.monotonicUs() / 1000}`));
  await time.advance(2100);
  const grant = await probe;
  grant.report({ outcome: outcomeOfResponse({ status: 500 }), status: 500 });
  await time.advance(0);
  assert.deepEqual(ended, ["BreakerOpenError at 2100"], "not at 3000 ms, when the rate has capacity");
});

test("a call whose circuit ends at its bound is granted, and says that it waited for the circuit", async () => {
  const time = new FakeTime();
  const options = { ...plain, defaults: { ...plain.defaults, fail_max: 1, reset_timeout_s: 1, roles: {} } };
  const breakers = new BreakerRegistry(options, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  breakers.onFailure({ host, status: 500 });
  const granted = gate.enter({ host, role: "metadata", maxWaitMs: 1000 }) as Promise<Grant>;
  await time.advance(1000);
  const { wait } = await granted;
  assert.deepEqual([wait.waitedMs, wait.breakerWaitMs, wait.waitedFor?.kind], [1000, 1000, "breaker"]);
});

test("a call waits for the hold of its own role, and not for a longer one of another role", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry(plain, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  const hold = (role: "metadata" | "artifact", ms: number) =>
    breakersOf(breakers).giveOrder({ unit: host, role }, { kind: "hold", ms, reason: "cli-open:test" });
  hold("artifact", 600_000);
  hold("metadata", 5000);
  const waitedMs: number[] = [];
  for (const role of ["artifact", "metadata"] as const)
    (gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY }) as Promise<Grant>).then(grant => {
      waitedMs.push(grant.wait.waitedMs);
      grant.giveBack();
    });
  await time.advance(600_000);
  assert.deepEqual(waitedMs, [5000, 600_000]);
});

/** A gate whose rate is used up for 20 seconds. */
function usedUpGate() {
  const time = new FakeTime();
  const breakers = new BreakerRegistry(plain, { time, random: () => 0 });
  const metadata = { rates: "1/20SECOND", guard_ms: 0, max_delay_ms: 0 };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time, { breakers });
  const request = { host, role: "metadata" } as const;
  (gate.enter(request) as Grant).release();
  return { breakers, gate, request };
}

test("of a hold and a used-up rate, refusals and check name the one that ends last", () => {
  const { breakers, gate, request } = usedUpGate();
  for (const [holdMs, retryAfterMs, kind] of [
    [400, 20_000, "window"],
    [60_000, 60_000, "cooldown"],
  ] as const) {
    breakersOf(breakers).giveOrder(
      { unit: host, role: "metadata" },
      { kind: "hold", ms: holdMs, reason: "cli-open:test" },
    );
    assert.deepEqual([gate.check(request)?.retryAfterMs, gate.check(request)?.constraint.kind], [retryAfterMs, kind]);
    assert.throws(
      () => gate.enter(request),
      (error: RateLimitExceeded) => error.retryAfterMs === retryAfterMs && error.constraint.kind === kind,
    );
  }
});

test("of a used-up rate and an open circuit, check names the one that ends last", () => {
  const { breakers, gate, request } = usedUpGate();
  breakers.open(host, 5);
  assert.deepEqual([gate.check(request)?.retryAfterMs, gate.check(request)?.constraint.kind], [20_000, "window"]);
  breakers.open(host, 50);
  assert.deepEqual([gate.check(request)?.retryAfterMs, gate.check(request)?.constraint.kind], [50_000, "breaker"]);
});

test("a call that has ended while the shared record was read is not queued", async () => {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  const store = storeWith(member, {
    read: async name => {
      await time.sleep(100);
      return member.read(name);
    },
  });
  const breakers = new BreakerRegistry(plain, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers, store });
  breakers.open(host, 60);
  await time.advance(5000);
  const caller = { isOver: false, onWait: () => assert.fail("it is queued") };
  const entered = gate.enter({ host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY, caller });
  const ended = assert.rejects(async () => entered, { name: "AbortError" });
  await time.advance(10);
  caller.isOver = true;
  await time.advance(500);
  await ended;
  assert.equal(gate.waiting, 0);
});

test("the key of a blocked request is listed with it, also when its budget is idle or evicted", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time, random: () => 0 });
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "10/s" } } }, "test");
  const gate = new Gate(limits, time, { breakers });
  const call = (name: string) => gate.tryEnter({ host: name, role: "metadata" })?.release();
  call(host);
  breakers.open(host, 3600, "maintenance");
  void gate.enter({ host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
  for (let round = 0; round < 3; round += 1) {
    const keys = gate.keySnapshots().filter(({ key }) => key === host);
    assert.deepEqual(
      keys.map(({ waiting }) => waiting),
      [1],
    );
    for (let other = 0; other < 20; other += 1) call(`h${round}x${other}.example`);
    await time.advance(5000);
  }
});
