import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, keyOf, limiterOf, metadataLimits, role, roleLimits } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";

const REQUEST = { host: "a.example", role: "metadata" } as const;

test("a dropped request frees its slot at once, and counts as written now until it is stamped", async () => {
  const time = new FakeTime();
  const metadata = { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0, max_concurrent: 1 };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time);
  const grant = gate.enter(REQUEST) as Grant;
  await time.advance(10);
  grant.releaseUnstamped();
  assert.equal(gate.inFlight, 0);
  await time.advance(90);
  grant.written();
  // Later calls have no effect.
  await time.advance(50);
  grant.written();
  grant.release();
  grant.giveBack();
  await time.advance(949);
  assert.equal(gate.tryEnter(REQUEST), undefined);
  await time.advance(1);
  assert.ok(gate.tryEnter(REQUEST));
  assert.equal(gate.inFlight, 1);
});

test("releaseUnstamped of a written request only frees its slot", async () => {
  const time = new FakeTime();
  const metadata = { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0, max_concurrent: 1 };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time);
  const grant = gate.enter(REQUEST) as Grant;
  grant.written();
  await time.advance(100);
  grant.releaseUnstamped();
  grant.written();
  assert.equal(gate.inFlight, 0);
  await time.advance(900);
  assert.ok(gate.tryEnter(REQUEST));
});

test("units of a request that was not written are returned, and a request that waits for them is granted at once", async () => {
  const { time, log, pass, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
  const grant = enterNow();
  pass();
  await time.advance(300);
  grant.giveBack();
  await time.advance(0);
  assert.deepEqual(log, [300]);
});

test("units of a request that was written are never returned", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
  const grant = enterNow();
  grant.written();
  grant.giveBack();
  assert.equal(gate.tryEnter({ host, role }), undefined);
  assert.equal([...gate.roleBudgets()][0]?.log.pending, 0);
  await time.advance(1000);
  assert.ok(gate.tryEnter({ host, role }));
});

test("a grant ends once, however often it is released or given back", () => {
  const { gate, enterNow } = gateOf(roleLimits({ rates: "9/s", max_concurrent: 1 }));
  const grant = enterNow();
  grant.release();
  grant.release();
  grant.giveBack();
  assert.equal(gate.inFlight, 0);
  enterNow();
  assert.equal(gate.tryEnter({ host, role }), undefined);
});

test("a grant that did not wait has waitedMs 0", () => {
  const { gate } = gateOf(roleLimits({ rates: "9/s" }));
  const answer = gate.tryEnter({ host, role });
  assert.ok(answer);
  assert.equal(answer.waitedMs, 0);
  assert.equal((gate.enter({ host, role }) as Grant).waitedMs, 0);
});

test("a grant of acquire that was not used can be given back until it is released", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "2/s", max_concurrent: 2 }));
  const first = limiter.tryAcquire({ host });
  await time.advance(300);
  const second = limiter.tryAcquire({ host });
  start({ maxWaitMs: Number.POSITIVE_INFINITY });
  await time.advance(100);
  second?.giveBack();
  second?.giveBack();
  await time.advance(0);
  assert.deepEqual(log, [400], "the request that waits gets the unit and the slot");
  assert.equal(limiter.snapshot().inFlight, 2);
  first?.release();
  first?.giveBack();
  assert.equal(limiter.check({ host })?.retryAfterMs, 600, "a request that was released counts");
  await time.advance(600);
  assert.ok(limiter.tryAcquire({ host }));
  assert.equal(limiter.check({ host })?.retryAfterMs, 400, "the unit of 400 ms is still in the window");
});

test("amounts that are settled several times after a reload count the largest of them once", async () => {
  const limits = { hosts: { [host]: { metadata: { rates: "9/s", costs: { credits: "200/DAY" } } } } };
  const { limiter, time } = limiterOf(limits);
  const used = () => keyOf(limiter).windows.find(({ unit }) => unit === "credits")?.used;
  const grant = await limiter.acquire({ host, costs: { credits: 85 } });
  await time.advance(10);
  limiter.reload(limits);
  await time.advance(10);
  for (const [credits, counted] of [
    [40, 85],
    [85, 85],
    [40, 85],
    [90, 90],
  ] as const) {
    grant.settle({ credits });
    assert.equal(used(), counted);
  }
});
