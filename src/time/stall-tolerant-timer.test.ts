import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../testing/fake-time.ts";
import { setStallTolerantTimer } from "./stall-tolerant-timer.ts";

test("without a stall the timer fires at its time, and never after it was cancelled", async () => {
  const time = new FakeTime();
  const fired: number[] = [];
  setStallTolerantTimer(time, 1000, () => fired.push(time.monotonicUs()));
  const cancelledEarly = setStallTolerantTimer(time, 1000, () => fired.push(-1));
  const cancelledLate = setStallTolerantTimer(time, 1000, () => fired.push(-2));
  cancelledEarly.cancel();
  await time.advance(800);
  cancelledLate.cancel();
  await time.advance(199);
  assert.deepEqual(fired, []);
  await time.advance(1);
  assert.deepEqual(fired, [1_000_000]);
  await time.advance(10_000);
  assert.equal(fired.length, 1);
});

test("after a stall the event loop gets a quarter of the time to read what has arrived", async () => {
  for (const beforeStallMs of [0, 500, 749, 751, 999]) {
    const time = new FakeTime();
    let firedUs: number | undefined;
    setStallTolerantTimer(time, 1000, () => {
      firedUs = time.monotonicUs();
    });
    await time.advance(beforeStallMs);
    await time.stall(1200);
    const stalledUntilUs = time.monotonicUs();
    await time.advance(249);
    assert.equal(firedUs, undefined, `stall after ${beforeStallMs} ms`);
    await time.advance(1);
    assert.equal(firedUs, stalledUntilUs + 250_000, `stall after ${beforeStallMs} ms`);
  }
});
