import assert from "node:assert/strict";
import { test } from "node:test";
import { decayedGuardUs, widenedGuardUs } from "./guard.ts";

test("each unexplained 429 doubles the guard, up to 250 ms", () => {
  const widths = [25_000];
  for (let i = 0; i < 5; i += 1) widths.push(widenedGuardUs(widths.at(-1) as number));
  assert.deepEqual(widths, [25_000, 50_000, 100_000, 200_000, 250_000, 250_000]);
});

test("a key without a guard gets the default guard first", () => {
  assert.equal(widenedGuardUs(0), 25_000);
});

test("each hour without an unexplained 429 halves the guard, down to the policy's", () => {
  const hourUs = 3_600_000_000;
  assert.equal(decayedGuardUs(200_000, 25_000, hourUs - 1), 200_000);
  assert.equal(decayedGuardUs(200_000, 25_000, hourUs), 100_000);
  assert.equal(decayedGuardUs(200_000, 25_000, 3 * hourUs), 25_000);
  assert.equal(decayedGuardUs(200_000, 25_000, 9 * hourUs), 25_000);
  assert.equal(decayedGuardUs(25_000, 0, 100 * hourUs), 0);
});
