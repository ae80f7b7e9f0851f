import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleOf } from "./sample.ts";

test("a seed gives the same sample in the original order", () => {
  const items = Array.from({ length: 100 }, (_, index) => index);
  const drawn = sampleOf(items, 10, 7);
  assert.equal(drawn.length, 10);
  assert.deepEqual(drawn, sampleOf(items, 10, 7));
  assert.deepEqual(
    drawn,
    drawn.toSorted((a, b) => a - b),
  );
  assert.notDeepEqual(drawn, sampleOf(items, 10, 8));
});
