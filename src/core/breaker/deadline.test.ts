import assert from "node:assert/strict";
import { test } from "node:test";
import { wallDeadlineMs } from "./deadline.ts";

test("a monotonic deadline is converted to wall time", () => {
  assert.equal(wallDeadlineMs(150e6, { monotonicUs: 100e6, wallMs: 1_000_000 }), 1_050_000);
});

test("a deadline in wall time is rounded up, so that it is never early", () => {
  assert.equal(wallDeadlineMs(1, { monotonicUs: 0, wallMs: 5 }), 6);
});
