import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, limiterOf, metadataLimits, role, roleLimits, totalLimits } from "../../test/limiter/kit.ts";
import { BusyError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";
import { WaitQueue } from "./wait-queue.ts";

/** Holds each grant for 100 ms and returns the most that were held at once. */
async function crowd({ limiter, time }: ReturnType<typeof limiterOf>, calls: number) {
  let held = 0;
  let most = 0;
  const work = async () => {
    using _grant = await limiter.acquire({ host });
    held += 1;
    most = Math.max(most, held);
    await time.sleep(100);
    held -= 1;
  };
  const done = Promise.all(Array.from({ length: calls }, work)).then(() => time.monotonicUs() / 1000);
  await time.advance(5000);
  return { most, doneMs: await done };
}

test("units returned to a total grant the waiting request of another role", async () => {
  const { time, log, pass, enterNow } = gateOf(totalLimits({ rates: "1/10s" }));
  const grant = enterNow();
  pass({ role: "artifact" });
  await time.advance(300);
  grant.giveBack();
  await time.advance(0);
  assert.deepEqual(log, [300]);
});

test("when a heavy request leaves the head of the queue, the light one behind it is granted at once", async () => {
  const { time, log, pass } = gateOf(roleLimits({ rates: "4/s" }));
  const abort = new AbortController();
  pass({ weight: 2 });
  pass({ weight: 4, signal: abort.signal });
  pass();
  await time.advance(500);
  abort.abort();
  await time.advance(0);
  assert.deepEqual(log, [0, "AbortError", 500]);
});

test("when a heavy request leaves its turn at a total, a light one of another role is granted at once", async () => {
  const { time, log, pass } = gateOf(totalLimits({ rates: "4/s" }));
  const abort = new AbortController();
  pass({ weight: 2 });
  pass({ weight: 4, role: "artifact", signal: abort.signal });
  pass();
  await time.advance(500);
  abort.abort();
  await time.advance(0);
  assert.deepEqual(log, [0, "AbortError", 500]);
});

test("requests without a bound share one timer of their role budget", async () => {
  const { time, pass } = gateOf(roleLimits({ rates: "1/s" }));
  for (let call = 0; call < 4; call += 1) pass();
  await time.advance(0);
  assert.equal(time.armedTimers, 1);
});

test("no request overtakes a heavy one that has the turn at a total", async () => {
  const { gate, time, log, pass } = gateOf(totalLimits({ rates: "4/s" }));
  pass({ weight: 2 });
  pass({ weight: 4, role: "artifact" });
  await time.advance(0);
  assert.equal(gate.tryEnter({ host, role }), undefined);
  await time.advance(1000);
  assert.deepEqual(log, [0, 1000]);
});

test("a heavy request keeps its turn at a total when a request of another role leaves", async () => {
  const { time, log, pass, gate } = gateOf(totalLimits({ rates: "4/s" }));
  for (let call = 0; call < 3; call += 1) pass({ weight: 3 });
  await time.advance(1000);
  const light: number[] = [];
  const leaving = new AbortController();
  Promise.resolve(gate.enter({ host, role: "landing", maxWaitMs: 9000 })).then(grant => {
    grant.release();
    light.push(time.monotonicUs() / 1000);
  });
  const left = assert.rejects(
    Promise.resolve(gate.enter({ host, role: "artifact", maxWaitMs: 9000, signal: leaving.signal })),
  );
  await time.advance(0);
  leaving.abort();
  await left;
  await time.advance(1000);
  assert.deepEqual(log, [0, 1000, 2000]);
  assert.deepEqual(light, [2000]);
});

test("requests that wait for another host, or no longer wait, delay no request of this one", async () => {
  const { gate, time, pass } = gateOf(totalLimits({ rates: "99/s" }, { rates: "1/s" }));
  pass();
  pass();
  await time.advance(1000);
  pass({ host: "slow.example" });
  pass({ host: "slow.example" });
  await time.advance(1000);
  pass({ host: "slow.example" });
  await time.advance(0);
  assert.equal(gate.waiting, 1);
  assert.ok(gate.tryEnter({ host, role }));
  assert.ok(gate.tryEnter({ host, role: "artifact" }));
});

test("a grant made while another one is being emitted keeps the order of turns", async () => {
  const held: Grant[] = [];
  let isNested = false;
  const { gate, time } = gateOf({ ...roleLimits({ rates: "99/s" }), global: { max_inflight: 2 } }, event => {
    if (isNested && "outcome" in event && event.outcome === "granted") held.pop()?.release();
  });
  held.push(gate.enter({ host, role }) as Grant, gate.enter({ host, role }) as Grant);
  const order: string[] = [];
  for (const name of ["a.example", "a.example", "b.example"])
    void (gate.enter({ host: name, role }) as Promise<Grant>).then(() => order.push(name));
  isNested = true;
  held.pop()?.release();
  await time.advance(0);
  assert.deepEqual(order, ["a.example", "b.example"]);
});

test("a role budget that is held gives up its turn at the total", async () => {
  const time = new FakeTime();
  const roles = { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: "99/s", guard_ms: 0 } };
  const gate = new Gate(
    limitPoliciesFrom({ defaults: roles, hosts: { [host]: { total: { rates: "4/s", guard_ms: 0 } } } }, "test"),
    time,
  );
  gate.enter({ host, role, weight: 2, stamp: "granted" });
  void gate.enter({ host, role: "artifact", weight: 4, maxWaitMs: Number.POSITIVE_INFINITY });
  let wentMs = -1;
  void (gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY }) as Promise<Grant>).then(() => {
    wentMs = time.monotonicUs() / 1000;
  });
  await time.advance(100);
  assert.equal(wentMs, -1);
  gate.hold(host, "artifact", 10_000);
  await time.advance(0);
  assert.equal(wentMs, 100);
});

test("after a stall of ten seconds one window of requests is sent, not the backlog", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "10/s", max_delay_ms: 60_000 }));
  for (let call = 0; call < 130; call += 1) start();
  await time.advance(0);
  await time.stall(10_000);
  assert.equal(log.length, 20);
  await time.advance(999);
  assert.equal(log.length, 20);
  await time.advance(1);
  assert.equal(log.length, 30);
});

test("a timer that fires early grants no request early", async () => {
  const time = new FakeTime({ earlyUs: () => 1000 });
  const { start, log } = limiterOf(metadataLimits({ rates: "1/s", max_delay_ms: 60_000 }), time);
  for (let call = 0; call < 5; call += 1) start();
  await time.advance(10_000);
  for (const [call, sentMs] of log.entries()) assert.ok((sentMs as number) >= call * 1000, `${call} at ${sentMs}`);
});

test("ten calls through a ceiling of three all succeed, three at a time", async () => {
  const set = limiterOf({ ...metadataLimits({ rates: "100/s", max_delay_ms: 100 }), global: { max_inflight: 3 } });
  const { most, doneMs } = await crowd(set, 10);
  assert.equal(most, 3);
  assert.equal(doneMs, 400);
  assert.equal(set.limiter.snapshot().inFlight, 0);
});

test("max_concurrent of a role applies to each role separately", async () => {
  const { start, log, time } = limiterOf({
    defaults: { metadata: { rates: "9/s", max_concurrent: 1 }, artifact: { rates: "9/s", max_concurrent: 1 } },
  });
  const first = (await start()) as Grant;
  start();
  start({ role: "artifact" });
  await time.advance(250);
  assert.deepEqual(log, [0, 0]);
  first.release();
  first.release();
  await time.advance(0);
  assert.deepEqual(log, [0, 0, 250]);
});

test("a call that may not wait for a slot gets a BusyError without retryAfterMs", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "9/s", max_concurrent: 1 }));
  await start();
  const error = await limiter.acquire({ host, maxWaitMs: 0 }).catch(reason => reason);
  assert.ok(error instanceof BusyError);
  assert.equal(error.retryAfterMs, undefined);
  assert.deepEqual(error.constraint, { kind: "concurrency", owner: host, limit: "max_concurrent 1" });
  const late = limiter.acquire({ host, maxWaitMs: 300 }).catch(reason => reason.name);
  await time.advance(299);
  assert.equal(limiter.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(await late, "BusyError");
  assert.equal(limiter.snapshot().waiting, 0);
  assert.equal(time.armedTimers, 0);
  assert.deepEqual(log, [0]);
});

test("a request that waits for a rate holds no global slot", async () => {
  const { limiter, start, time } = limiterOf({
    ...metadataLimits({ rates: "99/s", max_delay_ms: 60_000 }),
    hosts: { "slow.example": { metadata: { rates: "1/3s" } } },
    global: { max_inflight: 1 },
  });
  ((await start({ host: "slow.example" })) as Grant).release();
  start({ host: "slow.example" });
  await time.advance(0);
  assert.ok(limiter.tryAcquire({ host }));
});

test("under the global ceiling hosts take turns, however many requests of one host wait", async () => {
  const { limiter, time } = limiterOf({ ...metadataLimits({ rates: "999/s" }), global: { max_inflight: 1 } });
  const order: string[] = [];
  const work = async (name: string, role: "metadata" | "artifact" = "metadata") => {
    using _grant = await limiter.acquire({ host: name, role, maxWaitMs: Number.POSITIVE_INFINITY });
    order.push(name[0] as string);
    await time.sleep(1);
  };
  const all = [
    ...Array.from({ length: 6 }, () => work("a.example")),
    ...Array.from({ length: 2 }, () => work("a.example", "artifact")),
    ...Array.from({ length: 3 }, () => work("b.example")),
    ...Array.from({ length: 2 }, () => work("c.example")),
  ];
  await time.advance(100);
  await Promise.all(all);
  assert.equal(order.join(""), "aabcabcabaaaa");
});

test("under a host's total roles take turns, and a heavy request skips turns for its weight", async () => {
  const rates = { rates: "999/s", guard_ms: 0, max_delay_ms: 1e9 };
  const { limiter, time } = limiterOf({
    defaults: { metadata: rates, artifact: rates },
    hosts: { [host]: { total: { rates: "4/s", guard_ms: 0 } } },
  });
  const order: string[] = [];
  const start = (role: "metadata" | "artifact", weight: number, name: string) =>
    limiter.acquire({ host, role, weight }).then(() => order.push(name));
  const all = [start("metadata", 4, "-")];
  for (let call = 0; call < 3; call += 1) all.push(start("artifact", 3, "A"));
  for (let call = 0; call < 9; call += 1) all.push(start("metadata", 1, "m"));
  await time.advance(60_000);
  await Promise.all(all);
  assert.equal(order.join(""), "-AmmmAmmmAmmm");
});

test("turns that two roles skip for weights of a billion units take no time", async () => {
  const { limiter, time, log, start } = limiterOf(totalLimits({ rates: "1000000000/s" }, { rates: "none" }));
  const heavy = { weight: 1_000_000_000, maxWaitMs: 60_000 };
  for (let round = 0; round < 3; round += 1) {
    start({ ...heavy, role: "metadata" });
    start({ ...heavy, role: "artifact" });
  }
  await time.advance(2000);
  assert.deepEqual(log, [0, 1000, 2000]);
  // Three wait: the last of them starts at 5 s, and a new one after it.
  assert.equal(limiter.check({ host, weight: heavy.weight })?.retryAfterMs, 4000);
});

test("requests without a bound are not visited again for each one that arrives or leaves", async t => {
  const { limiter, time, start } = limiterOf(totalLimits({ rates: "1/s" }));
  const visits = t.mock.method(WaitQueue.prototype, "all").mock;
  const aborts = Array.from({ length: 50 }, () => new AbortController());
  for (const [index, { signal }] of aborts.entries()) {
    start({ role: index % 2 === 0 ? "metadata" : "artifact", maxWaitMs: Number.POSITIVE_INFINITY, signal });
    await time.advance(0);
  }
  for (const abort of aborts.slice(25)) {
    abort.abort();
    await time.advance(0);
  }
  assert.equal(visits.callCount(), 0);
  assert.equal(limiter.check({ host })?.retryAfterMs, 25_000);
});
