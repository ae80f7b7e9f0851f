import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, limiterOf, role, roleLimits, totalLimits } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";

test("after some requests left the queue, estimates and counts are those of the rest", async () => {
  const { gate, time, log, pass, refusal } = gateOf(roleLimits({ rates: "1/s" }));
  const abort = new AbortController();
  pass();
  pass();
  pass({ signal: abort.signal });
  pass();
  await time.advance(500);
  assert.equal(refusal().retryAfterMs, 3500);
  abort.abort();
  const [roleBudget] = gate.roleBudgets();
  assert.ok(roleBudget);
  assert.equal(roleBudget.waiting, 2);
  assert.equal(refusal().retryAfterMs, 2500);
  for (let call = 0; call < 3; call += 1) pass();
  assert.equal(refusal().retryAfterMs, 5500);
  await time.advance(1000);
  assert.equal(roleBudget.waiting, 4);
  assert.equal(refusal().retryAfterMs, 4500);
  await time.advance(10_000);
  assert.deepEqual(log, [0, "AbortError", 1000, 2000, 3000, 4000, 5000]);
});

test("the estimate of a smooth key includes its spacing", () => {
  const { enterNow, pass, refusal } = gateOf(roleLimits({ rates: "6/s", shape: "smooth" }));
  enterNow().release();
  assert.equal(refusal().retryAfterMs, 250);
  assert.equal(refusal().constraint.kind, "spacing");
  pass();
  assert.equal(refusal().retryAfterMs, 500);
});

test("requests that wait for a slot are estimated from now, not from the past", async () => {
  const { time, enterNow, pass, refusal } = gateOf(roleLimits({ rates: "2/10s", max_concurrent: 1 }));
  enterNow().written();
  await time.advance(4000);
  pass();
  pass();
  assert.equal(refusal().retryAfterMs, 10_000);
});

test("estimates that have passed are computed again", async () => {
  const { time, enterNow, pass, refusal } = gateOf(roleLimits({ rates: "1/s", max_concurrent: 1 }));
  const grant = enterNow();
  grant.written();
  for (let call = 0; call < 3; call += 1) pass();
  await time.advance(5000);
  grant.release();
  await time.advance(0);
  // One was granted at 5 s, two wait for 6 s and 7 s.
  assert.equal(refusal().retryAfterMs, 3000);
});

test("the estimate at a total adds whole windows for the units ahead", async () => {
  const { time, enterNow, pass, refusal } = gateOf(totalLimits({ rates: "2/10s" }));
  enterNow().release();
  await time.advance(4000);
  enterNow().release();
  pass();
  assert.equal(refusal().retryAfterMs, 10_000);
  pass();
  assert.equal(refusal().retryAfterMs, 16_000);
  pass();
  assert.equal(refusal().retryAfterMs, 20_000);
  pass();
  assert.equal(refusal().retryAfterMs, 26_000);
});

test("a total that was never used has an estimate too", () => {
  const { gate, pass, refusal } = gateOf(totalLimits({ rates: "2/10s+2/s" }));
  gate.hold(host, role, 5000);
  for (let call = 0; call < 3; call += 1) pass();
  assert.ok((refusal().retryAfterMs ?? 0) >= 10_000);
});

test("the queue of another role counts with no more units than it has, at every level", () => {
  const one = gateOf(totalLimits({ rates: "1/3s" }));
  one.enterNow().release();
  one.pass({ role: "artifact" });
  for (let call = 0; call < 4; call += 1) one.pass();
  assert.equal(one.refusal().retryAfterMs, 18_000);
  const two = gateOf(
    roleLimits(
      { rates: "99/s" },
      {
        hosts: {
          [host]: { total: { rates: "99/s", guard_ms: 0 } },
          "b.example": { total: { rates: "99/s", guard_ms: 0 } },
        },
        groups: { both: { members: [host, "b.example"], total: { rates: "1/3s", guard_ms: 0 } } },
      },
    ),
  );
  two.enterNow().release();
  two.pass({ host: "b.example" });
  for (let call = 0; call < 4; call += 1) two.pass();
  assert.equal(two.refusal().retryAfterMs, 18_000);
});

test("the constraint names the budget with the latest start, be it the role's, the total or the global ceiling", () => {
  const roleBudgetGate = gateOf(totalLimits({ rates: "99/s" }, { rates: "1/10s" }));
  roleBudgetGate.enterNow().release();
  assert.equal(roleBudgetGate.refusal().constraint.limit, "1/10SECOND");
  const capped = gateOf(totalLimits({ rates: "99/s", max_concurrent: 1 }, { rates: "99/s", max_concurrent: 5 }));
  capped.enterNow();
  assert.equal(capped.refusal().constraint.limit, "max_concurrent 1");
  const ceiling = gateOf({ ...roleLimits({ rates: "99/s", max_concurrent: 5 }), global: { max_inflight: 1 } });
  ceiling.enterNow();
  assert.deepEqual(ceiling.refusal().constraint, { kind: "concurrency", owner: "global", limit: "max_inflight 1" });
});

test("a total of two windows is estimated by the later one, in either order", () => {
  const { enterNow, pass, refusal } = gateOf(totalLimits({ rates: "1/10s+1/s" }));
  enterNow().release();
  pass();
  assert.equal(refusal().retryAfterMs, 20_000);
});

test("a request that left the queue of another role does not count there", () => {
  const { enterNow, pass, refusal } = gateOf(totalLimits({ rates: "1/3s" }));
  const abort = new AbortController();
  enterNow().release();
  pass({ role: "artifact" });
  pass({ role: "artifact", signal: abort.signal });
  abort.abort();
  for (let call = 0; call < 4; call += 1) pass();
  assert.equal(refusal().retryAfterMs, 18_000);
});

test("after grants and an abort the estimate of a queue is still exact", async () => {
  const { time, pass, refusal } = gateOf(roleLimits({ rates: "2/s" }));
  const abort = new AbortController();
  for (let call = 0; call < 11; call += 1) pass(call === 8 ? { signal: abort.signal } : {});
  await time.advance(2000);
  abort.abort();
  // Six were granted; four wait for 3 s and 4 s.
  assert.equal(refusal().retryAfterMs, 3000);
  pass();
  pass();
  pass();
  assert.equal(refusal().retryAfterMs, 4000);
});

test("the rate, the skipped turns and the aborts of another role do not delay the estimate of a new request", async () => {
  const make = (artifact: string) => {
    const time = new FakeTime();
    const roles = { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: artifact, guard_ms: 0 } };
    const limits = limitPoliciesFrom(
      { defaults: roles, hosts: { [host]: { total: { rates: "1/10s", guard_ms: 0 } } } },
      "test",
    );
    const gate = new Gate(limits, time);
    const wait = (waiting: "metadata" | "artifact", signal?: AbortSignal) =>
      void (gate.enter({ host, role: waiting, maxWaitMs: Number.POSITIVE_INFINITY, signal }) as Promise<Grant>).catch(
        () => "left",
      );
    const estimatedMs = () => {
      const refusal = gate.check({ host, role });
      return refusal === undefined ? 0 : refusal.retryAfterMs;
    };
    gate.enter({ host, role, stamp: "granted" });
    return { time, wait, estimatedMs };
  };
  const slow = make("1/1000s");
  for (let call = 0; call < 5; call += 1) slow.wait("metadata");
  for (let call = 0; call < 5; call += 1) slow.wait("artifact");
  assert.equal(slow.estimatedMs(), 70_000);
  const leaving = make("99/s");
  const abort = new AbortController();
  for (let call = 0; call < 5; call += 1) leaving.wait("metadata");
  for (let call = 0; call < 5; call += 1) leaving.wait("artifact", abort.signal);
  assert.equal(leaving.estimatedMs(), 110_000);
  abort.abort();
  assert.equal(leaving.estimatedMs(), 60_000);
});

test("a smooth total is estimated by its spacing, and a turn held by another role is reported as the limit of the total", () => {
  const time = new FakeTime();
  const roles = { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: "99/s", guard_ms: 0 } };
  const smooth = new Gate(
    limitPoliciesFrom({ defaults: roles, hosts: { [host]: { total: { rates: "3/10s", shape: "smooth" } } } }, "test"),
    time,
  );
  smooth.enter({ host, role, stamp: "granted" });
  const spaced = smooth.check({ host, role });
  assert.ok(spaced);
  assert.equal(spaced.retryAfterMs, 10_000);
  assert.equal(spaced.constraint.kind, "spacing");
  const heavy = new Gate(
    limitPoliciesFrom({ defaults: roles, hosts: { [host]: { total: { rates: "4/s", guard_ms: 0 } } } }, "test"),
    time,
  );
  heavy.enter({ host, role, weight: 2, stamp: "granted" });
  void heavy.enter({ host, role: "artifact", weight: 4, maxWaitMs: Number.POSITIVE_INFINITY });
  const refusal = heavy.check({ host, role });
  assert.ok(refusal);
  assert.deepEqual(refusal.constraint, { kind: "window", owner: host, limit: "4/SECOND" });
  // The heavy request starts after one second and uses the whole next one.
  assert.equal(refusal.retryAfterMs, 2000);
});

test("the estimate at a shared total counts the queue of the other role, because roles take turns", () => {
  const { limiter, start } = limiterOf({
    defaults: { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: "99/s", guard_ms: 0 } },
    hosts: { [host]: { total: { rates: "1/3s", guard_ms: 0 } } },
  });
  limiter.tryAcquire({ host });
  for (let call = 0; call < 4; call += 1) start({ role: "artifact", maxWaitMs: Number.POSITIVE_INFINITY });
  for (let call = 0; call < 4; call += 1) start({ role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
  const refusal = limiter.check({ host });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 27_000);
});
