import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { duration } from "../../web/format.ts";

test("a duration in the page never has 60 seconds or minutes beside a larger unit", () => {
  assert.deepEqual([340, 999.6, 4200, 9960, 59_600, 2_819_700, 3_599_800, 7_500_000].map(duration), [
    "340 ms",
    "1.0 s",
    "4.2 s",
    "10 s",
    "1 min 0 s",
    "47 min 0 s",
    "1 h 0 min",
    "2 h 5 min",
  ]);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 4e8, noNaN: true }), ms => {
      assert.doesNotMatch(duration(ms), /\b60 (?:s|min)|\b1000 ms/);
    }),
  );
});
