import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, role, roleLimits } from "../../test/limiter/kit.ts";
import type { LimiterEvent } from "./limiter-events.ts";

test("a cooldown delays the whole queue", async () => {
  const { gate, time, pass, refusal } = gateOf(roleLimits({ rates: "1/s" }));
  pass();
  pass();
  await time.advance(0);
  gate.hold(host, role, 10_000);
  assert.equal(refusal().retryAfterMs, 11_000);
});

test("a cooldown that is already in force emits no second event", () => {
  const events: LimiterEvent[] = [];
  const { gate } = gateOf(roleLimits({ rates: "1/s" }), event => events.push(event));
  gate.hold(host, role, 1000);
  gate.hold(host, role, 1000);
  assert.equal(events.length, 1);
});

const throttled = { isThrottled: true };

test("a throttle without Retry-After holds its key for the shortest window, guard included", () => {
  const { gate, refusal } = gateOf(roleLimits({ rates: ["10/s", "100/HOUR"], guard_ms: 0 }));
  gate.tryEnter({ host, role })?.recordResponse(throttled);
  assert.equal(refusal().retryAfterMs, 1000);
  assert.equal(refusal().constraint.kind, "cooldown");
});

test("further throttles of the same burst do not extend the hold", async () => {
  const events: LimiterEvent[] = [];
  const { gate, time, refusal } = gateOf(roleLimits({ rates: "10/s", guard_ms: 0 }), event => events.push(event));
  const grants = Array.from({ length: 3 }, () => gate.tryEnter({ host, role }));
  for (const grant of grants) {
    grant?.release();
    grant?.recordResponse(throttled);
    await time.advance(300);
  }
  assert.equal(refusal().retryAfterMs, 100);
  assert.equal(events.filter(({ event_type }) => event_type === "ratelimit.cooldown").length, 1);
});

test("a throttle holds a key with daily windows only for a minute, not for a day", () => {
  const daily = gateOf(roleLimits({ rates: "100/DAY" }));
  daily.gate.tryEnter({ host, role })?.recordResponse(throttled);
  assert.equal(daily.refusal().retryAfterMs, 60_000);
});

test("a throttle with Retry-After, or with an announced reset, is not held for the window", () => {
  const { gate, refusal } = gateOf(roleLimits({ rates: "10/MINUTE", guard_ms: 0 }));
  gate.tryEnter({ host, role })?.recordResponse({ ...throttled, retryAfterMs: 5000 });
  assert.equal(gate.check({ host, role }), undefined);
  const announced = [{ source: "x-ratelimit" as const, remaining: 0, resetMs: 12_000 }];
  gate.tryEnter({ host, role })?.recordResponse({ ...throttled, announced });
  assert.equal(refusal().retryAfterMs, 12_000);
});

test("a throttle holds a key without windows for a second", () => {
  const { gate, refusal } = gateOf(roleLimits({ rates: "none" }));
  gate.tryEnter({ host, role })?.recordResponse(throttled);
  assert.equal(refusal().retryAfterMs, 1000);
});
