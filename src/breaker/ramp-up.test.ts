import assert from "node:assert/strict";
import { test } from "node:test";
import { host, plain, setUp } from "../../test/breaker/kit.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";

const SUCCESS = { outcome: { kind: "success" }, status: 200 } as const;
const FAILED = { outcome: { kind: "failure", cause: "status", throttled: false }, status: 503 } as const;

/** Takes as many permits as there are. */
function takeAll(registry: BreakerRegistry, role: "metadata" | "artifact" = "metadata") {
  const permits = [];
  for (let next = registry.tryAllow({ host, role }); next.isAllowed; next = registry.tryAllow({ host, role })) {
    permits.push(next);
    if (permits.length > 100) break;
  }
  return permits;
}

test("after an operator's cooldown each role resumes with its trial calls, and doubles", async () => {
  const { time, registry } = setUp({ ...plain, advanced: { ramp_up: { max_calls: 8 } } });
  registry.open(host, 60);
  await time.advance(60_000);
  assert.equal(takeAll(registry, "artifact").length, 2);
  const steps: number[] = [];
  for (let step = 0; step < 4; step += 1) {
    const permits = takeAll(registry);
    steps.push(permits.length);
    for (const permit of permits) permit.report(SUCCESS);
  }
  assert.deepEqual(steps, [1, 2, 4, 101]);
});

test("a trial call after a cooldown has jitter, later calls have none", async () => {
  const { time, registry } = setUp(plain, () => 0.5);
  registry.open(host, 60);
  await time.advance(60_000);
  const trial = registry.allow({ host });
  assert.equal(trial.jitterMs, 75);
  trial.report(SUCCESS);
  assert.equal(registry.allow({ host }).jitterMs, 0);
});

test("a failure after a cooldown starts again with the trial calls", async () => {
  const { time, registry } = setUp();
  registry.open(host, 60);
  await time.advance(60_000);
  for (const permit of takeAll(registry)) permit.report(SUCCESS);
  const [first, second] = takeAll(registry);
  first?.report(FAILED);
  second?.report(SUCCESS);
  assert.equal(takeAll(registry).length, 2);
});

test("an answer without a permit counts for the call that has waited longest", async () => {
  const { time, registry } = setUp();
  registry.open(host, 60);
  await time.advance(60_000);
  assert.equal(takeAll(registry).length, 1);
  registry.onSuccess({ host });
  assert.equal(takeAll(registry).length, 2);
});

test("an operator who closes a host ends its ramp-up", async () => {
  const { time, registry } = setUp();
  registry.open(host, 60);
  await time.advance(60_000);
  takeAll(registry);
  registry.close(host);
  assert.equal(takeAll(registry).length, 101);
});

test("a role that an operator has opened alone resumes with its trial calls", async () => {
  const { time, registry } = setUp();
  breakersOf(registry).giveOrder(
    { unit: host, role: "artifact" },
    { kind: "open", ms: 60_000, reason: "cli-open:test", isReplacing: false },
  );
  assert.equal(takeAll(registry, "artifact").length, 0);
  assert.equal(takeAll(registry).length, 101);
  await time.advance(60_000);
  assert.equal(takeAll(registry, "artifact").length, 2);
  breakersOf(registry).giveOrder({ unit: host, role: "artifact" }, { kind: "close" });
  assert.equal(takeAll(registry, "artifact").length, 101);
});

test("without ramp_up everything resumes at once, also after a reload", async () => {
  const off = { ...plain, advanced: { ramp_up: { enabled: false } } };
  const { time, registry } = setUp(off);
  registry.open(host, 60);
  await time.advance(60_000);
  assert.equal(takeAll(registry).length, 101);
  registry.reload(plain);
  registry.open(host, 60);
  await time.advance(60_000);
  assert.equal(takeAll(registry).length, 1);
  registry.reload(off);
  assert.equal(takeAll(registry).length, 101);
});

function setUpGate(maxDelayMs: number) {
  const time = new FakeTime();
  const breakers = new BreakerRegistry(plain, { time, random: () => 0 });
  const limits = { defaults: { metadata: { rates: "100/SECOND", guard_ms: 0, max_delay_ms: maxDelayMs } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { breakers });
  return { time, breakers, gate, enter: (maxWaitMs?: number) => gate.enter({ host, role: "metadata", maxWaitMs }) };
}

test("calls wait for their place after a cooldown as for a slot: max_delay_ms does not bound it, maxWaitMs does", async () => {
  const { time, breakers, gate, enter } = setUpGate(0);
  breakers.open(host, 60);
  await time.advance(60_000);
  const trial = enter() as Grant;
  const waiting = [enter(), enter()].map(entry => Promise.resolve(entry));
  const bounded = assert.rejects(Promise.resolve(enter(500)), { name: "BreakerOpenError", isTrialRunning: true });
  assert.throws(() => enter(0), { name: "BreakerOpenError", reason: "cli-open:operator" });
  assert.equal(gate.waiting, 3);
  await time.advance(500);
  await bounded;
  await time.advance(4500);
  trial.answered();
  const grants = await Promise.all(waiting);
  assert.deepEqual(
    grants.map(({ wait: { waitedMs, breakerWaitMs } }) => [waitedMs, breakerWaitMs]),
    [
      [5000, 5000],
      [5000, 5000],
    ],
  );
  // The body of the trial call is still being read.
  trial.report(SUCCESS);
  trial.release();
});

test("a cooldown that begins while calls wait for their place refuses those whose bound it exceeds at once", async () => {
  const { time, breakers, enter } = setUpGate(0);
  breakers.open(host, 60);
  await time.advance(60_000);
  const trial = enter() as Grant;
  const waiting = Promise.resolve(enter(20_000));
  const refused = assert.rejects(waiting, { name: "BreakerOpenError", reason: "retry-after" });
  trial.report({
    outcome: { kind: "failure", cause: "status", throttled: true },
    status: 429,
    retryAfterMs: 30_000,
  });
  trial.release();
  await refused;
});

test("the ramp-up after a cooldown of calls without a partition is for those calls alone", async () => {
  const { time, registry } = setUp({ ...plain, defaults: { per: "partition", half_open: { jitter_ms: 0 } } });
  registry.onFailure({ host, status: 429, retryAfterMs: 10_000 });
  const calls = ["a", "a", "b"].map(partition => registry.tryAllow({ host, partition }));
  for (const call of calls) {
    assert.ok(call.isAllowed, "no partition was in cooldown");
    call.report(SUCCESS);
  }
  await time.advance(10_001);
  assert.equal(takeAll(registry).length, 1, "the calls of the partitions have not used it up");
});

test("the ramp-up after an operator's order is common to all partitions, also after a Retry-After without a partition", async () => {
  const { time, registry } = setUp({ ...plain, defaults: { per: "partition", half_open: { jitter_ms: 0 } } });
  const early = registry.allow({ host });
  registry.open(host, 10);
  early.report({ outcome: { kind: "failure", cause: "status", throttled: true }, status: 429, retryAfterMs: 5000 });
  await time.advance(10_001);
  const isAllowed = (partition: string) => registry.tryAllow({ host, partition }).isAllowed;
  assert.deepEqual(["a", "b"].map(isAllowed), [true, false]);
  registry.onSuccess({ host, partition: "a" });
  assert.deepEqual(["a", "b", "a"].map(isAllowed), [true, true, false], "an answer without a permit counts");
});
