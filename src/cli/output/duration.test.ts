import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration } from "./duration.ts";

test("a duration is rounded to the last unit that is shown, and never shows 60 of a unit", () => {
  const texts = [0, 2540, 9940, 9960, 59_400, 59_600, 119_600, 3_599_400, 3_599_600, 7_170_000].map(formatDuration);
  assert.deepEqual(texts, [
    "0.0 s",
    "2.5 s",
    "9.9 s",
    "10 s",
    "59 s",
    "1 min 0 s",
    "2 min 0 s",
    "59 min 59 s",
    "1 h 0 min",
    "2 h 0 min",
  ]);
});
