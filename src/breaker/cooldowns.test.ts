import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { Cooldowns } from "./cooldowns.ts";

test("Retry-After on 429 and 503 starts a cooldown of all roles, at most retry_after_cap_s", async () => {
  const { time, registry, answer, isAllowed } = setUp();
  answer(429, {}, 4000);
  assert.deepEqual([isAllowed(), isAllowed({ role: "artifact" })], [false, false]);
  assert.equal(registry.state(host).reason, "retry-after");
  await time.advance(3999);
  assert.equal(isAllowed(), false);
  await time.advance(1);
  assert.equal(isAllowed(), true);
  answer(503, {}, 2_000_000);
  assert.equal(registry.remainingMs(host), 900_000);
});

test("an invalid Retry-After, or one on another status, starts no cooldown", () => {
  const { registry, answer } = setUp();
  answer(500, {}, 4000);
  answer(404, {}, 4000);
  answer(200, {}, 4000);
  answer(429);
  answer(429, {}, 0);
  assert.equal(registry.remainingMs(host), 0);
});

test("the later cooldown wins, and a success of an older permit does not end it", () => {
  const { registry, answer } = setUp();
  const older = registry.allow({ host });
  const alsoOlder = registry.allow({ host });
  answer(429, {}, 900_000);
  alsoOlder.report({ outcome: outcomeOfResponse({ status: 429 }), retryAfterMs: 5000 });
  assert.equal(registry.remainingMs(host), 900_000);
  older.report({ outcome: { kind: "success" } });
  assert.equal(registry.remainingMs(host), 900_000);
});

test("a throttle of an older generation still starts its cooldown", () => {
  const { registry, answers } = setUp();
  const older = registry.allow({ host });
  answers(503, 5);
  older.report({ outcome: outcomeOfResponse({ status: 429 }), retryAfterMs: 300_000 });
  assert.equal(registry.remainingMs(host), 300_000);
});

test("a circuit opened by an operator is closed only by time or an operator", async () => {
  const { time, registry, isAllowed } = setUp();
  registry.open(host, 300, "maintenance");
  assert.equal(registry.state(host).reason, "cli-open:maintenance");
  assert.equal(registry.state(host).openUntilWallMs, time.wallMs() + 300_000);
  registry.onSuccess({ host });
  assert.equal(isAllowed(), false);
  registry.close(host);
  assert.equal(isAllowed(), true);
  registry.open(host, 300);
  await time.advance(300_000);
  assert.equal(isAllowed(), true);
  assert.throws(() => registry.open(host, 0), RangeError);
  assert.throws(() => registry.allow(JSON.parse('{ "host": "a.example", "role": "pdf" }')), /unknown role "pdf"/);
});

test("failures within the rolling window start a cooldown even if no role reaches fail_max", async () => {
  const { time, answers, registry, isAllowed } = setUp({
    defaults: { fail_max: 99 },
    advanced: { rolling_window: { window_s: 10, threshold_failures: 3, cooldown_s: 60 } },
  });
  for (const [waitMs, role] of [
    [0, "metadata"],
    [4000, "artifact"],
    [5000, "landing"],
  ] as const) {
    await time.advance(waitMs);
    answers(500, 1, { role });
  }
  assert.equal(registry.state(host).reason, "rolling-window");
  assert.equal(registry.check({ host })?.error().lastFailure, "HTTP 500");
  await time.advance(59_999);
  assert.equal(isAllowed(), false);
  await time.advance(1);
  assert.equal(isAllowed(), true);
  for (const waitMs of [0, 5000, 6000]) {
    await time.advance(waitMs);
    answers(500, 1);
  }
  assert.equal(isAllowed(), true);
});

test("a successful probe clears the rolling window of its host", async () => {
  const { time, registry, answers } = setUp({
    defaults: { fail_max: 5, reset_timeout_s: 1 },
    advanced: { adaptive_reset: { enabled: false } },
  });
  answers(503, 5);
  await time.advance(1000);
  answers(200, 1);
  answers(503, 1);
  assert.equal(registry.state(host).state, "closed");
  assert.equal(registry.state(host).windowFailures, 1);
});

test("by default six failures within 30 s start a cooldown of 60 s", () => {
  const { registry, answers } = setUp({});
  for (const role of ["metadata", "artifact", "landing"] as const) answers(500, 2, { role });
  assert.equal(registry.remainingMs(host), 60_000);
  assert.equal(registry.state(host).windowFailures, 0);
});

test("a step of the wall clock does not change the end of a cooldown", async () => {
  const { time, answer, isAllowed } = setUp();
  answer(429, {}, 4000);
  time.stepWall(1_000_000);
  assert.equal(isAllowed(), false);
  time.stepWall(-2_000_000);
  await time.advance(4000);
  assert.equal(isAllowed(), true);
});

test("repeated Retry-Afters longer than the reset timeout raise it for the run", async () => {
  const { time, answer, events, registry, answers } = setUp({
    defaults: { fail_max: 3, reset_timeout_s: 10 },
    advanced: { rolling_window: { enabled: false } },
  });
  const raises = () => events.filter(event => event.event_type === "breaker_reset_raised");
  answer(429, {}, 120_000);
  await time.advance(120_000);
  assert.deepEqual(raises(), []);
  answer(429, {}, 120_000);
  assert.deepEqual(raises(), [{ event_type: "breaker_reset_raised", host, old_s: 10, new_s: 120 }]);
  await time.advance(120_000);
  answers(503, 3);
  assert.equal(registry.remainingMs(host), 120_000);
});

test("a success of a later permit ends the server cooldown, and never an operator's", () => {
  const cooldowns = new Cooldowns();
  cooldowns.set({ untilUs: 100, reason: "retry-after", afterPermit: 3 });
  assert.equal(cooldowns.endBySuccess(3, 0), false);
  assert.equal(cooldowns.endBySuccess(4, 0), true);
  assert.equal(cooldowns.current(0), undefined);
  cooldowns.set({ untilUs: 100, reason: "retry-after", afterPermit: 3 });
  cooldowns.set({ untilUs: 100, reason: "cli-open:x", afterPermit: 3 });
  assert.equal(cooldowns.current(0)?.reason, "cli-open:x");
  cooldowns.endBySuccess(4, 0);
  assert.equal(cooldowns.current(0)?.reason, "cli-open:x");
});

test("only consecutive long Retry-Afters raise the reset time", async () => {
  const { answer, time, events } = setUp({
    defaults: { fail_max: 99, reset_timeout_s: 10 },
    advanced: { rolling_window: { enabled: false } },
  });
  for (const ms of [60_000, 5000, 60_000, 10_000, 60_000, 3000]) {
    answer(429, {}, ms);
    await time.advance(ms);
  }
  assert.deepEqual(
    events.filter(event => event.event_type === "breaker_reset_raised"),
    [],
  );
});

test("a cooldown that does not end later emits no event", () => {
  const { registry, events } = setUp();
  for (const seconds of [60, 60, 5]) registry.open(host, seconds);
  assert.equal(events.filter(event => event.event_type === "breaker_cooldown_set").length, 1);
});

test("after a raise, only consecutive longer Retry-Afters raise the reset time again", async () => {
  const { answer, time, events } = setUp({
    defaults: { fail_max: 99, reset_timeout_s: 10 },
    advanced: { rolling_window: { enabled: false } },
  });
  for (const ms of [60_000, 60_000, 120_000]) {
    answer(429, {}, ms);
    await time.advance(ms);
  }
  const raises = events.filter(event => event.event_type === "breaker_reset_raised");
  assert.deepEqual(
    raises.map(({ old_s, new_s }) => [old_s, new_s]),
    [[10, 60]],
  );
});

function setUpSlow(slow: object = { slow_call_ms: 2000 }) {
  return setUp({ defaults: { fail_max: 99 }, advanced: { rolling_window: { slow_call_min: 4, ...slow } } });
}

test("a share of slow calls within the rolling window starts a cooldown, which traffic leaves slowly", async () => {
  const { time, registry, isAllowed } = setUpSlow();
  const call = async (ms: number) => {
    const permit = registry.allow({ host });
    await time.advance(ms);
    permit.report({ outcome: { kind: "success" }, status: 200 });
  };
  for (const ms of [2001, 100, 100]) await call(ms);
  assert.equal(isAllowed(), true);
  await call(2001);
  assert.equal(registry.state(host).reason, "slow-calls");
  assert.equal(registry.remainingMs(host), 60_000);
  assert.match(String(registry.check({ host })?.error()), /too many slow calls within the rolling window/);
  await time.advance(60_000);
  registry.allow({ host });
  assert.equal(isAllowed(), false);
});

test("slow calls do not count unless slow_call_ms is set, nor do calls that were not answered", async () => {
  for (const [slow, outcome] of [
    [{}, { outcome: { kind: "success" }, status: 200 }],
    [{ slow_call_ms: 1 }, { outcome: { kind: "neutral" } }],
  ] as const) {
    const { time, registry, isAllowed } = setUpSlow(slow);
    for (let call = 0; call < 20; call += 1) {
      const permit = registry.allow({ host });
      await time.advance(1000);
      permit.report(outcome);
    }
    assert.equal(isAllowed(), true);
  }
});

test("an operator's reason loses its secrets before it is stored, printed or reported", () => {
  const { registry } = setUp();
  registry.open(host, 60, "quota of api_key=hunter2 is used, see https://me:hunter2@wiki.example/quota");
  assert.equal(registry.state(host).reason, "cli-open:quota of api_key=… is used, see https://…@wiki.example/quota");
  assert.throws(
    () => registry.allow({ host }),
    ({ message }: Error) => message.includes("api_key=…") && !message.includes("hunter2"),
  );
});
