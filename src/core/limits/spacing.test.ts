import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRates } from "./rate.ts";
import { evenSpacingUs } from "./spacing.ts";

test("even spacing leaves two requests of the shortest window unused", () => {
  assert.equal(evenSpacingUs(parseRates("10/SECOND+5000/HOUR")), 125_000);
  assert.equal(evenSpacingUs(parseRates("7/s")), 200_000);
  assert.equal(evenSpacingUs(parseRates("1/3SECOND")), 3_000_000);
  assert.equal(evenSpacingUs(parseRates("12/s+7/s+9/s")), 200_000);
  assert.equal(evenSpacingUs(parseRates("5/s")), 333_334);
  assert.equal(evenSpacingUs([]), 0);
});
