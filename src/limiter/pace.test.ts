import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, hasKey, host, keyOf, limiterOf, metadataLimits, roleLimits } from "../../test/limiter/kit.ts";
import { MAX_GUARD_US } from "../core/limits/guard.ts";
import { makeWindow } from "../core/limits/window-log.ts";
import { Gate } from "../gate/gate.ts";
import { RateLimiter } from "../gate/rate-limiter.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { LimiterEmitter } from "./limiter-emitter.ts";
import type { LimiterEvent } from "./limiter-events.ts";
import { Pace } from "./pace.ts";
import { RoleBudgets } from "./role-budgets.ts";

const S = 1_000_000;
const aimd = {
  enabled: true,
  windowUs: 60 * S,
  highRatio: 0.05,
  increase: 0.05,
  decrease: 0.2,
  minMultiplier: 0.3,
  maxMultiplier: 1,
};

/** As `ratelimits.yaml` has it. */
const AIMD_OPTIONS = { enabled: true, window_s: 60 };

test("a pace with a 429 in an unevaluated counting window is not neutral, even if nothing else has changed", () => {
  const policy = {
    rates: [{ limit: 10, windowUs: S }],
    guardUs: MAX_GUARD_US,
    spacingUs: 125_000,
    windows: [makeWindow(10, S + MAX_GUARD_US)],
    labels: ["10/SECOND"],
    costs: [],
    maxConcurrent: 1,
    sharesSlots: false,
  };
  const pace = new Pace(policy, aimd, 0);
  assert.equal(pace.isNeutral(0), true);
  const use = { sentUnits: 1, processes: 1 };
  assert.deepEqual(pace.record(true, 0, use), [], "as wide and as smooth as can be");
  assert.equal(pace.isNeutral(60 * S), false);
  pace.tick(60 * S, use);
  assert.equal(pace.isNeutral(60 * S), false, "one call proves nothing yet");
  pace.tick(120 * S, use);
  assert.equal(pace.isNeutral(120 * S), true, "no response for two counting windows");
});

test("each hour without throttled responses halves the guard once, also if only successes are recorded", async () => {
  const { time, limiter, events } = limiterOf({ defaults: { metadata: { rates: "10/s+5000/h" } } });
  for (let again = 0; again < 3; again += 1) {
    limiter.record429({ host });
    await time.advance(2000);
  }
  assert.equal(keyOf(limiter).guardMs, 200);
  await time.advance(3_600_000);
  limiter.recordSuccess({ host });
  assert.equal(keyOf(limiter).guardMs, 100);
  limiter.recordSuccess({ host });
  limiter.tickAimd();
  assert.equal(keyOf(limiter).guardMs, 100);
  assert.deepEqual(
    events.map(event => "old" in event && [event.old, event.new]),
    [
      [25, 50],
      ["burst", "smooth"],
      [50, 100],
      [100, 200],
      [200, 100],
    ],
  );
});

test("the guard widens again only after the shortest window", async () => {
  const { time, limiter } = limiterOf({ defaults: { metadata: { rates: "10/s", guard_ms: 0 } } });
  limiter.record429({ host });
  await time.advance(1024);
  limiter.record429({ host });
  assert.equal(keyOf(limiter).guardMs, 25);
  await time.advance(1);
  limiter.record429({ host });
  assert.equal(keyOf(limiter).guardMs, 50);
});

test("a key that becomes smooth emits one event", async () => {
  const { time, limiter, events } = limiterOf({ defaults: { metadata: { rates: "10/s", guard_ms: 250 } } });
  for (let again = 0; again < 3; again += 1) {
    limiter.record429({ host });
    await time.advance(5000);
  }
  assert.equal(events.length, 1);
});

test("window lengths and spacings are rounded up, and half of the present pace is enough to speed up", async () => {
  const { time, limiter } = limiterOf({
    defaults: { metadata: { rates: "7/s", guard_ms: 250, shape: "smooth" } },
    aimd: { enabled: true, window_s: 60, decrease_step_pct: 70 },
  });
  for (let call = 0; call < 10; call += 1) limiter.record429({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.3);
  assert.ok(limiter.tryAcquire({ host }));
  await time.advance(666.666);
  assert.equal(limiter.tryAcquire({ host }), undefined);
  // At this spacing it can send 90 requests in a minute.
  for (let call = 0; call < 44; call += 1) limiter.recordSuccess({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.3);
  for (let call = 0; call < 45; call += 1) limiter.recordSuccess({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.35);
});

test("without AIMD no number of 429s changes the multiplier; guard and shape events have their own names", async () => {
  const time = new FakeTime();
  const events: LimiterEvent[] = [];
  const limiter = new RateLimiter(
    { defaults: { metadata: { rates: "10/s", guard_ms: 200 } } },
    { time, listener: event => events.push(event) },
  );
  for (let again = 0; again < 3; again += 1) {
    for (let call = 0; call < 20; call += 1) limiter.record429({ host });
    await time.advance(60_000);
    limiter.tickAimd();
  }
  assert.equal(limiter.snapshot().keys[0]?.multiplier, 1);
  assert.deepEqual(
    events.map(event => event.event_type),
    ["guard_adjust", "shape_adjust"],
  );
});

test("a stretched window is rounded up, and the event of a recovery gives its reason", async () => {
  const time = new FakeTime();
  const events: LimiterEvent[] = [];
  const limiter = new RateLimiter(
    {
      defaults: { metadata: { rates: "1/s", guard_ms: 250, shape: "smooth" } },
      aimd: { enabled: true, window_s: 60, decrease_step_pct: 70 },
    },
    { time, listener: event => events.push(event) },
  );
  for (let call = 0; call < 10; call += 1) limiter.record429({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  limiter.tryAcquire({ host });
  time.tick(3583.333);
  assert.equal(limiter.tryAcquire({ host }), undefined);
  time.tick(0.001);
  assert.ok(limiter.tryAcquire({ host }));
  for (let call = 0; call < 30; call += 1) limiter.recordSuccess({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(
    events.flatMap(event => (event.event_type === "aimd_adjust" ? [event.reason] : [])).at(-1),
    "no throttled responses",
  );
});

test("a stretched window counts requests that had already left it", async () => {
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

test("a 429 after an hour without any widens the guard, and max_multiplier below 1 applies from the start", async () => {
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

test("429s slow a key down by stretching its windows, and windows without 429s let it recover", async () => {
  const { limiter, time, events } = limiterOf({
    ...metadataLimits({ rates: "10/s" }),
    aimd: AIMD_OPTIONS,
  });
  const answers = (ok: number, throttled: number) => {
    for (let call = 0; call < ok; call += 1) limiter.recordSuccess({ host });
    for (let call = 0; call < throttled; call += 1) limiter.record429({ host });
  };
  const seen: number[] = [];
  for (let window = 0; window < 6; window += 1) {
    answers(95, 5);
    await time.advance(60_000);
    limiter.tickAimd();
    seen.push(keyOf(limiter).multiplier);
  }
  assert.deepEqual(seen, [0.8, 0.64, 0.512, 0.41, 0.328, 0.3]);
  answers(96, 4);
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.3);
  answers(90, 0);
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.35);
  const adjusted = events.filter(event => event.event_type === "aimd_adjust");
  assert.deepEqual(adjusted[0], {
    event_type: "aimd_adjust",
    host,
    role: "metadata",
    old: 1,
    new: 0.8,
    reason: "5 of 100 throttled",
  });
  assert.equal(adjusted.length, 7);
});

test("at 0.8 ten in a second become ten in 1250 ms, which is eight in a second", async () => {
  const { limiter, time, start, log } = limiterOf({
    ...metadataLimits({ rates: "10/s", max_delay_ms: 60_000 }),
    aimd: AIMD_OPTIONS,
  });
  for (let call = 0; call < 10; call += 1) limiter.recordSuccess({ host });
  limiter.record429({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  for (let call = 0; call < 20; call += 1) start();
  await time.advance(3000);
  const guardMs = keyOf(limiter).guardMs;
  assert.deepEqual(
    log.map(ms => (ms as number) - 60_000),
    [...Array(10).fill(0), ...Array(10).fill(1250 + guardMs)],
  );
});

test("a key that slows down keeps its history: a used-up minute stays used up", async () => {
  const { limiter, time } = limiterOf({
    ...metadataLimits({ rates: "10/MINUTE" }),
    aimd: { enabled: true, window_s: 10 },
  });
  for (let call = 0; call < 10; call += 1) assert.ok(limiter.tryAcquire({ host }));
  for (let call = 0; call < 10; call += 1) limiter.record429({ host });
  await time.advance(10_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.8);
  for (let second = 0; second < 64; second += 1) {
    assert.equal(limiter.tryAcquire({ host }), undefined);
    await time.advance(1000);
  }
});

test("a rate of one in three seconds slows down too, and so does a host that the policy does not list", async () => {
  const { limiter, time } = limiterOf({
    hosts: { [host]: { metadata: { rates: "1/3SECOND", guard_ms: 0 } } },
    aimd: AIMD_OPTIONS,
  });
  for (const name of [host, "unlisted.example"]) {
    for (let call = 0; call < 10; call += 1) limiter.record429({ host: name });
  }
  await time.advance(60_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.8);
  assert.equal(keyOf(limiter, "metadata", "unlisted.example").multiplier, 0.8);
  assert.ok(limiter.tryAcquire({ host }));
  const refusal = limiter.check({ host });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 3750 + 25);
});

test("a key that makes fewer than ten calls in a window is judged over several windows", async () => {
  const { limiter, time } = limiterOf({
    hosts: { [host]: { metadata: { rates: "1/8SECOND", guard_ms: 0 } } },
    aimd: AIMD_OPTIONS,
  });
  const multipliers: number[] = [];
  for (let call = 0; call < 31; call += 1) {
    limiter.record429({ host });
    multipliers.push(keyOf(limiter).multiplier ?? 1);
    await time.advance(8000);
  }
  // Ten calls are enough, and the eleventh ends their window.
  assert.deepEqual([...new Set(multipliers)], [1, 0.8, 0.64, 0.512]);
  assert.deepEqual([multipliers.indexOf(0.8), multipliers.indexOf(0.64), multipliers.indexOf(0.512)], [10, 20, 30]);
});

test("a 429 although the rate limit was kept widens the guard, and a burst of 429s only once", async () => {
  const { limiter, time, events } = limiterOf({ defaults: { metadata: { rates: "10/s" } } });
  for (let call = 0; call < 5; call += 1) limiter.record429({ host });
  assert.equal(keyOf(limiter).guardMs, 50);
  await time.advance(2000);
  for (let again = 0; again < 3; again += 1) {
    limiter.record429({ host });
    await time.advance(2000);
  }
  assert.equal(keyOf(limiter).guardMs, 250);
  assert.deepEqual(
    events.map(event => ("new" in event ? event.new : event.event_type)),
    [50, "smooth", 100, 200, 250],
  );
  await time.advance(3_600_000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).guardMs, 125);
});

test("a waiting request starts earlier at once when its key speeds up", async () => {
  const { limiter, time, start, log } = limiterOf({
    ...metadataLimits({ rates: "1/100s", max_delay_ms: 1e9 }),
    aimd: { enabled: true, window_s: 1, decrease_step_pct: 50, increase_step_pct: 50 },
  });
  for (let call = 0; call < 10; call += 1) limiter.record429({ host });
  await time.advance(1000);
  start();
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 0.5);
  start();
  limiter.recordSuccess({ host });
  await time.advance(1000);
  limiter.tickAimd();
  assert.equal(keyOf(limiter).multiplier, 1);
  await time.advance(100_000);
  assert.deepEqual(log, [1000, 101_000 + keyOf(limiter).guardMs]);
});

test("the second throttle without a calm hour between switches a key to even spacing", async () => {
  const { limiter, time } = limiterOf({ defaults: { metadata: { rates: "10/s" } } });
  const shapeAfter429 = () => {
    limiter.record429({ host });
    return keyOf(limiter).shape;
  };
  assert.equal(shapeAfter429(), "burst");
  await time.advance(3_600_000);
  assert.equal(shapeAfter429(), "burst");
  assert.equal(shapeAfter429(), "smooth");
});

test("throttles that an announced lower limit explains do not switch a key to even spacing", async () => {
  const { gate, time } = gateOf(roleLimits({ rates: "20/s" }));
  const announced = [{ source: "ratelimit" as const, limit: 10, windowUs: 1e6 }];
  const throttle = () =>
    gate.tryEnter({ host, role: "metadata" })?.recordResponse({ isThrottled: true, retryAfterMs: 1, announced });
  for (let answer = 0; answer < 5; answer += 1) throttle();
  assert.equal(gate.keySnapshots()[0]?.shape, "burst");
  await time.advance(2000);
  for (let answer = 0; answer < 2; answer += 1) throttle();
  assert.equal(gate.keySnapshots()[0]?.shape, "smooth");
});

test("a 503 with Retry-After counts for AIMD, and changes neither the guard nor the spacing", async () => {
  const events: LimiterEvent[] = [];
  const limits = roleLimits({ rates: "20/s" }, { aimd: { enabled: true, window_s: 1 } });
  const { gate, time } = gateOf(limits, event => events.push(event));
  for (let answer = 0; answer < 10; answer += 1)
    gate.tryEnter({ host, role: "metadata" })?.recordResponse({ status: 503, isThrottled: true, retryAfterMs: 1 });
  assert.deepEqual([gate.keySnapshots()[0]?.shape, gate.keySnapshots()[0]?.guardMs], ["burst", 0]);
  assert.deepEqual(
    events.filter(({ event_type }) => event_type === "aimd_adjust"),
    [],
  );
  await time.advance(1000);
  gate.tick();
  assert.equal(gate.keySnapshots()[0]?.multiplier, 0.8);
});

test("a 429 that an announced lower limit explains does not widen the guard", () => {
  const { gate } = gateOf(roleLimits({ rates: "20/s", guard_ms: 25 }));
  const announced = [{ source: "ratelimit" as const, limit: 10, windowUs: 1e6 }];
  gate.tryEnter({ host, role: "metadata" })?.recordResponse({ isThrottled: true, retryAfterMs: 1, announced });
  assert.equal(gate.keySnapshots()[0]?.guardMs, 25);
});

test("an explained throttle does not space a key evenly that the policy no longer spaces", () => {
  const { gate } = gateOf(roleLimits({ rates: "20/s", shape: "smooth" }));
  const throttle = (status: number) =>
    gate.tryEnter({ host, role: "metadata" })?.recordResponse({ status, isThrottled: true, retryAfterMs: 1 });
  gate.record(host, "metadata", true);
  gate.record(host, "metadata", true);
  gate.reload(limitPoliciesFrom(roleLimits({ rates: "20/s" }), "test"));
  throttle(503);
  assert.equal(gate.keySnapshots()[0]?.shape, "burst");
});

test("a host switches AIMD on or off for itself, whatever the policy says for every host", async () => {
  const other = "other.example";
  for (const isOn of [true, false]) {
    const { limiter, time } = limiterOf({
      defaults: { metadata: { rates: "99/s" } },
      hosts: { [host]: { aimd: isOn } },
      aimd: { enabled: !isOn, window_s: 60 },
    });
    for (let call = 0; call < 10; call += 1) for (const name of [host, other]) limiter.record429({ host: name });
    await time.advance(60_000);
    limiter.tickAimd();
    assert.deepEqual(
      [host, other].map(name => keyOf(limiter, "metadata", name).multiplier),
      isOn ? [0.8, 1] : [1, 0.8],
    );
  }
});

test("a key that is smooth by policy keeps its spacing after a 429: of a service and its host, and as a share", () => {
  const smooth = (rates: string) => ({ metadata: { rates, shape: "smooth" as const } });
  const limits = limitPoliciesFrom(
    { services: { s: { per_host: true, ...smooth("10/s") } }, hosts: { [host]: smooth("100/m") } },
    "test",
  );
  for (const processes of [1, 4]) {
    const budgets = new RoleBudgets(limits, new FakeTime(), new LimiterEmitter());
    const budget = budgets.forService("s", "metadata", host);
    budgets.share(processes);
    const { spacingUs } = budget;
    budget.pace = new Pace(budget.policy, budgets.aimd, 0);
    assert.deepEqual([spacingUs, budget.spacingUs], [612_245 * processes, 612_245 * processes]);
  }
});

test("a key with one 429 is forgotten once its guard would be narrow again", async () => {
  const { limiter, time, visit } = limiterOf(metadataLimits({ rates: "10/s", guard_ms: 25 }));
  limiter.record429({ host });
  await time.advance(3_599_000);
  visit(20);
  assert.ok(hasKey(limiter));
  await time.advance(36_000_000);
  visit(50);
  assert.equal(hasKey(limiter), false);
});

test("max_multiplier below 1 applies from the first request if only the host adapts, and to known keys after a reload", () => {
  const metadata = { rates: "10/s", guard_ms: 0 };
  const adaptive = (enabled: boolean) => ({ aimd: { enabled, max_multiplier: 0.5 } });
  const { limiter } = limiterOf({ ...adaptive(false), hosts: { [host]: { aimd: true, metadata } } });
  limiter.tryAcquire({ host });
  assert.equal(keyOf(limiter).multiplier, 0.5);
  const later = limiterOf({ hosts: { [host]: { metadata } } }).limiter;
  later.tryAcquire({ host });
  assert.equal(keyOf(later).multiplier, 1);
  later.reload({ ...adaptive(true), hosts: { [host]: { metadata } } });
  assert.equal(keyOf(later).multiplier, 0.5);
});

test("a key that sends as fast as it may recovers: with weights, even spacing, a long guard and as one of four processes", async () => {
  const recovered = async (limits: object, weight: number, members = 1) => {
    const time = new FakeTime();
    const store = new MemoryStore(time);
    const options = { defaults: { metadata: limits }, aimd: AIMD_OPTIONS };
    const gates = Array.from({ length: members }, (_, member) => {
      const shared = members === 1 ? {} : { store: store.member(`p${member}`) };
      return new Gate(limitPoliciesFrom(options, "test"), time, { ...shared, random: () => 0.5 });
    });
    const startMs = 120_000;
    const send = async (gate: Gate) => {
      while (time.monotonicUs() < 1_500_000_000) {
        const grant = await gate.enter({ host, role: "metadata", weight, maxWaitMs: Number.POSITIVE_INFINITY });
        grant.written();
        grant.recordResponse({ isThrottled: time.monotonicUs() < startMs * 1000, retryAfterMs: 1 });
        grant.release();
      }
    };
    const sending = gates.map(send);
    await time.advance(startMs);
    const multipliers = () => gates.map(gate => gate.keySnapshots()[0]?.multiplier);
    assert.ok(multipliers().every(multiplier => multiplier !== undefined && multiplier < 1));
    await time.advance(1_400_000);
    await Promise.all(sending);
    return multipliers();
  };
  assert.deepEqual(await recovered({ rates: "100/10s" }, 10), [1], "weights");
  assert.deepEqual(await recovered({ rates: "3/s" }, 1), [1], "even spacing of a small limit");
  assert.deepEqual(await recovered({ rates: "1/500ms", guard_ms: 1000 }, 1), [1], "a long guard");
  assert.deepEqual(await recovered({ rates: "8/2s" }, 1, 4), [1, 1, 1, 1], "four processes");
});
