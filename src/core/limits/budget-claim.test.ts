import assert from "node:assert/strict";
import { test } from "node:test";
import { ClaimCounts, claimText } from "./budget-claim.ts";

const loose = claimText({ spacingUs: 0, windows: [{ limit: 10, windowUs: 1000, spanUs: 1000 }] });
const strict = claimText({
  spacingUs: 7,
  windows: [
    { limit: 3, windowUs: 1000, spanUs: 1250 },
    { limit: 90, windowUs: 60_000, spanUs: 60_000 },
  ],
});

test("for each window the lowest limit and the longest span of all claims apply, and the widest spacing", () => {
  const claims = new ClaimCounts();
  claims.add(loose);
  claims.add(strict);
  assert.deepEqual(claims.strictest(), {
    spacingUs: 7,
    windows: [
      { limit: 3, windowUs: 1000, spanUs: 1250 },
      { limit: 90, windowUs: 60_000, spanUs: 60_000 },
    ],
  });
});

test("only the first process with a claim and the last one change the claims", () => {
  const claims = new ClaimCounts();
  assert.deepEqual([claims.add(loose), claims.add(loose), claims.add(strict)], [true, false, true]);
  assert.deepEqual([claims.remove(loose), claims.remove(loose), claims.remove(loose)], [false, true, false]);
  assert.deepEqual(claims.dump(), [{ text: strict, count: 1 }]);
});
