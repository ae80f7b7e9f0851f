import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "./random.ts";

test("random numbers are evenly distributed, and streams are independent", () => {
  const random = new Random(7);
  const counts = [0, 0, 0, 0];
  for (let draw = 0; draw < 40_000; draw += 1) {
    const drawn = random.whole(0, 3);
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  assert.ok(
    counts.every(count => Math.abs(count - 10_000) < 500),
    `${counts}`,
  );
  assert.notEqual(new Random(7, 1).next(), new Random(7, 2).next());
  assert.notEqual(new Random(7).next(), new Random(8).next());
});
