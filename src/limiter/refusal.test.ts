import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf } from "../../test/limiter/kit.ts";

test("retryAfterMs is rounded up, so that the window is open after it", () => {
  const { enterNow, refusal } = gateOf({ defaults: { metadata: { rates: "1/s", guard_ms: 0.4 } } });
  enterNow().release();
  assert.equal(refusal().retryAfterMs, 1001);
});
