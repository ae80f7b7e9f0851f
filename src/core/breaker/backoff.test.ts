import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { backoffMs } from "./backoff.ts";

const policy = { baseMs: 500, capMs: 20_000 };

test("the upper bound of a pause doubles with each failure, up to the cap", () => {
  const widest = [1, 2, 3, 6, 7, 60, 5000].map(failed => backoffMs(policy, failed, 0.999_999_9, undefined));
  assert.deepEqual(widest, [500, 1000, 2000, 16_000, 20_000, 20_000, 20_000]);
});

test("a pause is drawn between 0 and the upper bound", () => {
  assert.equal(backoffMs(policy, 3, 0, undefined), 0);
  assert.equal(backoffMs(policy, 3, 0.5, undefined), 1000);
});

test("Retry-After is a lower bound of the pause and never shortens it", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 99 }),
      fc.double({ min: 0, max: 0.999 }),
      fc.nat(1e9),
      (failed, random, retryAfterMs) => {
        const alone = backoffMs(policy, failed, random, undefined);
        assert.equal(backoffMs(policy, failed, random, retryAfterMs), Math.max(alone, retryAfterMs));
      },
    ),
  );
});
