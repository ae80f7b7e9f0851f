import assert from "node:assert/strict";
import { test } from "node:test";
import { roleBudgetPolicy, strictestPolicy } from "./budget-policy.ts";

test("empty options count HEAD and allow no wait", () => {
  const { countsHead, maxDelayMs } = roleBudgetPolicy({});
  assert.deepEqual([countsHead, maxDelayMs], [true, 0]);
});

test("of two caps the lower one holds, over all processes if one of the two does", () => {
  const capsOf = (...[first, second]: readonly [cap: number | undefined, shared: boolean][]) => {
    const [one, other] = [first, second].map(([max_concurrent, shared] = [undefined, false]) =>
      roleBudgetPolicy({ max_concurrent, shared }),
    );
    const { maxConcurrent, sharesSlots } = strictestPolicy(one ?? roleBudgetPolicy({}), other ?? roleBudgetPolicy({}));
    return [maxConcurrent, sharesSlots];
  };
  assert.deepEqual(capsOf([4, true], [3, false]), [3, true]);
  assert.deepEqual(capsOf([3, false], [4, true]), [3, true]);
  assert.deepEqual(capsOf([4, false], [4, true]), [4, true]);
  assert.deepEqual(capsOf([4, false], [undefined, true]), [4, false]);
});
