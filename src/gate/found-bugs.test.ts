import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Grant } from "../limiter/grant.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";
import { RateLimiter } from "./rate-limiter.ts";

// Bugs that were found once, each with what it takes to see it again.

const host = "a.example";
const role = "metadata";

test("a listener that releases a grant when somebody aborts loses nobody", async () => {
  const time = new FakeTime();
  let held: Grant | undefined;
  const listener = (event: LimiterEvent) => {
    if ("outcome" in event && event.outcome === "aborted") held?.release();
  };
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "99/s", max_concurrent: 1 } } }, "test");
  const gate = new Gate(limits, time, { listener });
  held = gate.enter({ host, role }) as Grant;
  const abort = new AbortController();
  const aborted = (gate.enter({ host, role, signal: abort.signal }) as Promise<Grant>).catch(() => "aborted");
  const next = gate.enter({ host, role }) as Promise<Grant>;
  abort.abort();
  await time.advance(0);
  assert.equal(await aborted, "aborted");
  assert.equal(gate.waiting, 0);
  (await next).release();
  assert.equal(gate.inFlight, 0);
});

test("a listener of the breakers that takes the last slot is not given it twice", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time });
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "99/s" } }, global: { max_inflight: 1 } }, "test");
  const gate = new Gate(limits, time, { breakers });
  let thief: Grant | undefined;
  const stop = breakers.listen(() => {
    stop();
    thief = gate.enter({ host: "b.example", role }) as Grant;
  });
  const entered = gate.enter({ host, role });
  assert.equal(gate.inFlight, 1);
  thief?.release();
  (await entered).release();
  assert.equal(gate.inFlight, 0);
});

test("limits that a listener changes in the middle of a round serve nobody twice", async () => {
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "2/s", guard_ms: 0, max_delay_ms: 60_000 } } };
  let reloads = 0;
  const limiter = new RateLimiter(limits, {
    time,
    listener: event => {
      if (!("outcome" in event) || event.outcome !== "granted" || event.blocked_ms === 0) return;
      reloads += 1;
      limiter.reload(limits);
    },
  });
  const wentMs: number[] = [];
  for (let call = 0; call < 8; call += 1) limiter.acquire({ host }).then(() => wentMs.push(time.monotonicUs() / 1000));
  await time.advance(5000);
  assert.deepEqual(wentMs, [0, 0, 1000, 1000, 2000, 2000, 3000, 3000]);
  assert.equal(reloads, 6);
  assert.equal(limiter.snapshot().waiting, 0);
  assert.equal(limiter.snapshot().keys[0]?.acquired, 8);
});

test("a circuit that turns half-open while it is asked lets nobody past the ceiling", async () => {
  const time = new FakeTime();
  const options = { defaults: { fail_max: 1, reset_timeout_s: 1 }, advanced: { rolling_window: { enabled: false } } };
  const breakers = new BreakerRegistry(options, { time });
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "99/s" } }, global: { max_inflight: 1 } }, "test");
  const gate = new Gate(limits, time, { breakers });
  breakers.onFailure({ host, status: 503 });
  const waiting = gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY });
  time.stepWall(1);
  await time.stall(999.5);
  const grants = [gate.enter({ host: "b.example", role })];
  await time.stall(10);
  assert.equal(gate.inFlight, 1);
  (await (grants[0] as Promise<Grant>)).release();
  (await waiting).release();
  assert.equal(gate.inFlight, 0);
});

test("two lanes whose releases alternate starve neither their GETs nor their HEADs", async () => {
  const time = new FakeTime();
  const limits = limitPoliciesFrom(
    { defaults: { metadata: { rates: "9999/s", max_concurrent: 1, count_head: false } } },
    "test",
  );
  const gate = new Gate(limits, time);
  const served = new Map<string, number>();
  const work = async (name: string, method: "GET" | "HEAD") => {
    for (let call = 0; call < 50; call += 1) {
      const grant = await gate.enter({ host: name, role, method });
      served.set(`${name} ${method}`, (served.get(`${name} ${method}`) ?? 0) + 1);
      await time.sleep(2);
      grant.release();
    }
  };
  for (const name of ["x.example", "y.example"]) for (const method of ["GET", "HEAD"] as const) void work(name, method);
  await time.advance(60);
  const counts = ["x.example GET", "x.example HEAD", "y.example GET", "y.example HEAD"].map(
    key => served.get(key) ?? 0,
  );
  assert.ok(Math.min(...counts) >= 14, counts.join(", "));
});

test("a window that is stretched counts what had already left it", async () => {
  const time = new FakeTime();
  const limiter = new RateLimiter(
    {
      defaults: { metadata: { rates: "100/MINUTE", guard_ms: 0 } },
      aimd: { enabled: true, window_s: 300, decrease_step_pct: 70 },
    },
    { time },
  );
  const sentS: number[] = [];
  const send = () => {
    if (limiter.tryAcquire({ host }) !== undefined) sentS.push(time.monotonicUs() / 1e6);
  };
  for (let call = 0; call < 200; call += 1) {
    send();
    limiter.record429({ host });
    await time.advance(1500);
  }
  limiter.tickAimd();
  assert.equal(limiter.snapshot().keys[0]?.multiplier, 0.3);
  for (let again = 0; again < 60; again += 1) send();
  const inStretched = sentS.filter(second => second > time.monotonicUs() / 1e6 - 200).length;
  assert.ok(inStretched <= 133, `${inStretched} in 200 s`);
  assert.equal(sentS.filter(second => second === time.monotonicUs() / 1e6).length, 0);
});

test("a neighbour's own rate, its debt and its departures are not held against a newcomer", async () => {
  const make = (artifact: string) => {
    const time = new FakeTime();
    const lanes = { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: artifact, guard_ms: 0 } };
    const limits = limitPoliciesFrom(
      { defaults: lanes, hosts: { [host]: { total: { rates: "1/10s", guard_ms: 0 } } } },
      "test",
    );
    const gate = new Gate(limits, time);
    const wait = (waiting: "metadata" | "artifact", signal?: AbortSignal) =>
      void (gate.enter({ host, role: waiting, maxWaitMs: Number.POSITIVE_INFINITY, signal }) as Promise<Grant>).catch(
        () => "left",
      );
    const foretoldMs = () => {
      const refusal = gate.check({ host, role });
      return refusal === undefined ? 0 : refusal.retryAfterMs;
    };
    gate.enter({ host, role, stamp: "granted" });
    return { time, wait, foretoldMs };
  };
  const slow = make("1/1000s");
  for (let call = 0; call < 5; call += 1) slow.wait("metadata");
  for (let call = 0; call < 5; call += 1) slow.wait("artifact");
  assert.equal(slow.foretoldMs(), 70_000);
  const leaving = make("99/s");
  const abort = new AbortController();
  for (let call = 0; call < 5; call += 1) leaving.wait("metadata");
  for (let call = 0; call < 5; call += 1) leaving.wait("artifact", abort.signal);
  assert.equal(leaving.foretoldMs(), 110_000);
  abort.abort();
  assert.equal(leaving.foretoldMs(), 60_000);
});

test("a smooth total foretells its spacing, and a turn that somebody else has is named as such", () => {
  const time = new FakeTime();
  const lanes = { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: "99/s", guard_ms: 0 } };
  const smooth = new Gate(
    limitPoliciesFrom({ defaults: lanes, hosts: { [host]: { total: { rates: "3/10s", shape: "smooth" } } } }, "test"),
    time,
  );
  smooth.enter({ host, role, stamp: "granted" });
  const spaced = smooth.check({ host, role });
  assert.ok(spaced);
  assert.equal(spaced.retryAfterMs, 10_000);
  assert.equal(spaced.constraint.kind, "spacing");
  const heavy = new Gate(
    limitPoliciesFrom({ defaults: lanes, hosts: { [host]: { total: { rates: "4/s", guard_ms: 0 } } } }, "test"),
    time,
  );
  heavy.enter({ host, role, weight: 2, stamp: "granted" });
  void heavy.enter({ host, role: "artifact", weight: 4, maxWaitMs: Number.POSITIVE_INFINITY });
  const refusal = heavy.check({ host, role });
  assert.ok(refusal);
  assert.deepEqual(refusal.constraint, { kind: "window", owner: host, limit: "4/SECOND" });
  // A lower bound: when the heavy one goes is not foretold to another lane, only that it goes first.
  assert.equal(refusal.retryAfterMs, 1000);
});

test("a grant written late moves what is foretold to those behind it", async () => {
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates: "1/s", guard_ms: 0 } } }, "test"), time);
  const grant = gate.enter({ host, role }) as Grant;
  void gate.enter({ host, role, maxWaitMs: 5000 });
  await time.advance(900);
  grant.written();
  const refusal = gate.check({ host, role });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 2000);
});

test("a lane that is held gives up its turn at the total", async () => {
  const time = new FakeTime();
  const lanes = { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: "99/s", guard_ms: 0 } };
  const gate = new Gate(
    limitPoliciesFrom({ defaults: lanes, hosts: { [host]: { total: { rates: "4/s", guard_ms: 0 } } } }, "test"),
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

test("a 429 after a calm hour widens the guard, and a ceiling below one holds from the start", async () => {
  const time = new FakeTime();
  const limiter = new RateLimiter({ defaults: { metadata: { rates: "10/s" } } }, { time });
  limiter.record429({ host });
  await time.advance(3_600_000);
  limiter.record429({ host });
  assert.equal(limiter.snapshot().keys[0]?.guardMs, 50);
  const capped = new RateLimiter(
    { defaults: { metadata: { rates: "1/s", guard_ms: 0 } }, aimd: { enabled: true, max_multiplier: 0.5 } },
    { time },
  );
  capped.tryAcquire({ host });
  const refusal = capped.check({ host });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 2000);
});

test("a host in two spellings or in two groups is refused, not silently halved", () => {
  assert.throws(
    () => new RateLimiter({ hosts: { "X.example": {}, "x.example": {} } }),
    /hosts\.x\.example: x\.example is listed twice/,
  );
  const members = ["a.example"];
  assert.throws(
    () => new RateLimiter({ groups: { one: { members }, two: { members } } }),
    /a\.example is a member of one already/,
  );
});

test("a key that a path splits off learns by its path", () => {
  const limiter = new RateLimiter(
    { groups: { ols4: { members: ["www.example.org/ols4"] } } },
    { time: new FakeTime() },
  );
  limiter.record429({ host: "www.example.org", path: "/ols4/api" });
  assert.deepEqual(
    limiter.snapshot().keys.map(({ host: name, guardMs }) => [name, guardMs]),
    [["group ols4", 50]],
  );
});

test("ten thousand waits under one signal join and leave in no more than linear time", async () => {
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates: "1/s" } } }, "test"), time);
  const abort = new AbortController();
  let listeners = 0;
  const add = abort.signal.addEventListener.bind(abort.signal);
  abort.signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1;
    add(...args);
  };
  gate.enter({ host, role, stamp: "granted" });
  const waits = Array.from({ length: 10_000 }, () =>
    (gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY, signal: abort.signal }) as Promise<Grant>).catch(
      () => "left",
    ),
  );
  assert.equal(listeners, 1);
  abort.abort();
  assert.deepEqual(new Set(await Promise.all(waits)), new Set(["left"]));
  assert.equal(gate.waiting, 0);
  assert.equal(time.armedTimers, 0);
});
