import assert from "node:assert/strict";
import { test } from "node:test";
import { decayedGuardUs, evenSpacingUs, widenedGuardUs } from "./guard.ts";
import { parseRates } from "./rate.ts";

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

test("even spacing leaves two requests of the shortest window unused", () => {
  assert.equal(evenSpacingUs(parseRates("10/SECOND+5000/HOUR")), 125_000);
  assert.equal(evenSpacingUs(parseRates("7/s")), 200_000);
  assert.equal(evenSpacingUs(parseRates("1/3SECOND")), 3_000_000);
  assert.equal(evenSpacingUs(parseRates("12/s+7/s+9/s")), 200_000);
  assert.equal(evenSpacingUs(parseRates("5/s")), 333_334);
  assert.equal(evenSpacingUs([]), 0);
});
