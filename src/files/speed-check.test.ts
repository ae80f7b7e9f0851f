import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../testing/fake-time.ts";
import { SpeedCheck, TOO_SLOW } from "./speed-check.ts";

test("a body that delivers too little in a period is dropped, and a fast one never", async () => {
  const time = new FakeTime();
  let bytes = 0;
  let drops = 0;
  const body = {
    drop: () => {
      drops += 1;
    },
  };
  const check = new SpeedCheck({ bytes: 30_000, periodMs: 30_000, time }, body, () => bytes);
  for (let period = 0; period < 3; period += 1) {
    bytes += 30_000;
    await time.advance(30_000);
    assert.equal(drops, 0);
  }
  bytes += 29_999;
  await time.advance(29_999);
  assert.equal(check.error, undefined);
  await time.advance(1);
  assert.equal(drops, 1);
  const message = "received 29999 bytes in 30 s, expected at least 30000";
  assert.deepEqual({ ...(check.error as object | undefined) }, { code: TOO_SLOW });
  assert.match(String(check.error), new RegExp(message));
  assert.equal(time.armedTimers, 0);
});

test("a check that is stopped has no timer", () => {
  const time = new FakeTime();
  const check = new SpeedCheck({ bytes: 1, periodMs: 1000, time }, { drop: () => assert.fail() }, () => 0);
  assert.equal(time.armedTimers, 1);
  check.stop();
  assert.equal(time.armedTimers, 0);
});

test("the time of a write does not count, and the time that is left of the period counts after it", async () => {
  const time = new FakeTime();
  let bytes = 0;
  const dropped: number[] = [];
  const body = { drop: () => dropped.push(time.monotonicUs() / 1000) };
  const startMs = time.monotonicUs() / 1000;
  const check = new SpeedCheck({ bytes: 1000, periodMs: 30_000, time }, body, () => bytes);
  await time.advance(10_000);
  bytes += 1;
  const written = Promise.withResolvers<void>();
  const write = check.exclude(() => written.promise);
  assert.equal(time.armedTimers, 0);
  await time.advance(100_000);
  written.resolve();
  await write;
  await time.advance(19_999);
  assert.deepEqual(dropped, []);
  await time.advance(1);
  assert.deepEqual(dropped, [startMs + 130_000]);
  assert.match(String(check.error), /received 1 bytes in 30 s/);
  assert.equal(time.armedTimers, 0);
});
