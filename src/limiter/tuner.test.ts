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
