import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Distribution } from "./distribution.ts";

test("percentiles equal those of a sorted list, for any values in any order", () => {
  const values = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true })), { minLength: 1 });
  fc.assert(
    fc.property(values, fc.double({ min: 0.01, max: 1, noNaN: true }), (list, share) => {
      const distribution = new Distribution();
      for (const value of list) distribution.add(value);
      const sorted = list.toSorted((a, b) => a - b);
      assert.equal(distribution.percentile(share), sorted[Math.max(1, Math.ceil(share * list.length)) - 1]);
      assert.equal(distribution.max, sorted.at(-1));
    }),
  );
});

test("beyond 65,536 values percentiles are accurate to 1 %, and memory stops growing", () => {
  const distribution = new Distribution();
  const values = Array.from({ length: 200_000 }, (_, index) => 1 + ((index * 7919) % 200_000) / 10);
  for (const value of values) distribution.add(value);
  assert.equal(distribution.isExact, false);
  const sorted = values.toSorted((a, b) => a - b);
  for (const share of [0.01, 0.5, 0.95, 0.999]) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    assert.ok(Math.abs(distribution.percentile(share) / exact - 1) <= 0.01, `${share}`);
  }
  const bounded = values.reduce((sum, value) => sum + Math.min(value, 5000), 0);
  assert.ok(Math.abs(distribution.sumUpTo(5000) / bounded - 1) <= 0.01);
  assert.equal(distribution.max, sorted.at(-1));
});
