import assert from "node:assert/strict";
import { test } from "node:test";
import { formatWait } from "./duration.ts";

test("a duration is printed in milliseconds below a second and in seconds above, rounded up", () => {
  assert.deepEqual(
    [0, 0.2, 340, 999.5, 1000, 1001, 9900, 9950, 10_000, 45_000, 45_001].map(ms => formatWait(ms)),
    ["0 ms", "1 ms", "340 ms", "1.0 s", "1.0 s", "1.1 s", "9.9 s", "10 s", "10 s", "45 s", "46 s"],
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
