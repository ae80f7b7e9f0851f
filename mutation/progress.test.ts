import assert from "node:assert/strict";
import { test } from "node:test";
import { Progress } from "./progress.ts";

test("the time left follows from the mutants left and the rate until now", () => {
  let nowMs = 1000;
  const progress = new Progress([60, 40, 100], () => nowMs);
  nowMs += 30_000;
  assert.equal(progress.after(60), "[1/3 files, 60/200 mutants, 2.0/s, 1.2 min left]");
  nowMs += 70_000;
  assert.equal(progress.after(40), "[2/3 files, 100/200 mutants, 1.0/s, 1.7 min left]");
});
