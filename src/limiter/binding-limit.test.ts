import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, role, roleLimits, totalLimits } from "../../test/limiter/kit.ts";

test("behind several queues check names the window that delays the request, not the one that would delay the next", async () => {
  const total = { rates: ["1/100ms", "4/SECOND"] };
  const { time, pass, refusal } = gateOf(totalLimits(total));
  for (const asking of ["metadata", "metadata", "landing"] as const) pass({ role: asking });
  await time.advance(0);
  assert.deepEqual(refusal(), { retryAfterMs: 300, constraint: { kind: "window", owner: host, limit: "1/100MS" } });
  pass();
  await time.advance(0);
  assert.deepEqual(refusal(), { retryAfterMs: 1000, constraint: { kind: "window", owner: host, limit: "4/SECOND" } });
});

test("for a HEAD that no window counts the limit is the cooldown, also while the rate is used up for longer", () => {
  const { gate, enterNow, refusal } = gateOf(roleLimits({ rates: "1/HOUR", guard_ms: 0 }));
  enterNow().release();
  gate.hold(host, role, 5000);
  assert.deepEqual(refusal({ method: "HEAD" }), {
    retryAfterMs: 5000,
    constraint: { kind: "cooldown", owner: host, limit: "cooldown" },
  });
});

test("the even spacing is named where it is later than a cooldown", () => {
  const { gate, enterNow, refusal } = gateOf(roleLimits({ rates: "6/s", shape: "smooth", guard_ms: 0 }));
  enterNow().release();
  gate.hold(host, role, 100);
  assert.equal(refusal().constraint.kind, "spacing");
  assert.equal(refusal().retryAfterMs, 250);
});
