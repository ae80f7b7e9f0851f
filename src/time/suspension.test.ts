import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../testing/fake-time.ts";
import { Suspension } from "./suspension.ts";

test("a wall clock that gains more than a second on the monotonic one is reported once", async () => {
  const time = new FakeTime();
  const suspension = new Suspension(time);
  await time.advance(60_000);
  assert.equal(suspension.wasSuspended(), false, "both clocks run");
  time.stepWall(5000);
  assert.deepEqual([suspension.wasSuspended(), suspension.wasSuspended()], [true, false]);
});

test("a wall clock that is set back, or corrected a little, is no suspension", () => {
  const time = new FakeTime();
  const suspension = new Suspension(time);
  for (const ms of [-3_600_000, 1000, 1000]) {
    time.stepWall(ms);
    assert.equal(suspension.wasSuspended(), false);
  }
});
