import assert from "node:assert/strict";
import { test } from "node:test";
import { roleBudgetPolicy } from "./budget-policy.ts";

test("empty options count HEAD and allow no wait", () => {
  const { countsHead, maxDelayMs } = roleBudgetPolicy({});
  assert.deepEqual([countsHead, maxDelayMs], [true, 0]);
});
