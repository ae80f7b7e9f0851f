import assert from "node:assert/strict";
import { test } from "node:test";
import { formatWait } from "./duration.ts";

test("a duration is printed in milliseconds below a second and in seconds above, rounded up", () => {
  assert.deepEqual(
    [0, 0.2, 340, 999.5, 1000, 1001, 9900, 9950, 10_000, 45_000, 45_001].map(ms => formatWait(ms)),
    ["0 ms", "1 ms", "340 ms", "1.0 s", "1.0 s", "1.1 s", "9.9 s", "10 s", "10 s", "45 s", "46 s"],
  );
});

test("a duration of two days or more is printed in days", () => {
  const day = 86_400_000;
  assert.deepEqual(
    [2 * day - 1000, 2 * day, 2 * day + 1, 366 * day].map(ms => formatWait(ms)),
    ["172799 s", "2 days", "3 days", "366 days"],
  );
});

test("an upper limit is rounded down, so that a longer wait never prints as the same duration", () => {
  for (const [waitMs, limitMs] of [
    [200.1, 200],
    [1250, 1249.5],
    [10_000.5, 10_000],
    [45_700, 45_600],
  ] as const)
    assert.notEqual(formatWait(waitMs), formatWait(limitMs, Math.floor));
});
