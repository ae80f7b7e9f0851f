import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "./fake-time.ts";

test("time stands still until it is advanced", async () => {
  const time = new FakeTime({ wallMs: 5000 });
  assert.equal(time.monotonicUs(), 0);
  assert.equal(time.wallMs(), 5000);
  await time.advance(1.5);
  assert.equal(time.monotonicUs(), 1500);
  assert.equal(time.machineUs(), 1500);
  assert.equal(time.wallMs(), 5001);
});

test("timers fire in the order in which they are due, each at its time", async () => {
  const time = new FakeTime();
  const fired: [string, number][] = [];
  for (const [name, ms] of [
    ["late", 30],
    ["early", 10],
    ["tied", 10],
  ] as const) {
    time.setTimer(ms, () => fired.push([name, time.monotonicUs() / 1000]));
  }
  await time.advance(29);
  assert.deepEqual(fired, [
    ["early", 10],
    ["tied", 10],
  ]);
  await time.advance(1);
  assert.deepEqual(fired.at(-1), ["late", 30]);
  assert.equal(time.armedTimers, 0);
});

test("promises that a timer resolves run before the next timer fires", async () => {
  const time = new FakeTime();
  const log: string[] = [];
  const sleepTwice = async () => {
    await time.sleep(10);
    log.push(`woke at ${time.monotonicUs() / 1000}`);
    await time.sleep(10);
    log.push(`woke at ${time.monotonicUs() / 1000}`);
  };
  time.setTimer(15, () => log.push("timer at 15"));
  const done = sleepTwice();
  await time.advance(20);
  await done;
  assert.deepEqual(log, ["woke at 10", "timer at 15", "woke at 20"]);
});

test("timers that became due during a stall fire at its end", async () => {
  const time = new FakeTime();
  const fired: number[] = [];
  time.setTimer(10, () => fired.push(time.monotonicUs() / 1000));
  time.setTimer(20, () => fired.push(time.monotonicUs() / 1000));
  time.setTimer(2000, () => fired.push(time.monotonicUs() / 1000));
  await time.stall(1000);
  assert.deepEqual(fired, [1000, 1000]);
});

test("a timer can be up to a millisecond early, but a sleep is exact", async () => {
  const time = new FakeTime({ earlyUs: () => 5000 });
  let firedUs = 0;
  time.setTimer(10, () => {
    firedUs = time.monotonicUs();
  });
  let slept = false;
  const sleeping = time.sleep(10).then(() => {
    slept = true;
  });
  await time.advance(9.999);
  assert.equal(firedUs, 9000);
  assert.equal(slept, false);
  await time.advance(2);
  await sleeping;
  assert.equal(slept, true);
});

test("stepWall moves the wall clock but not elapsed time", () => {
  const time = new FakeTime({ wallMs: 1_000_000 });
  time.stepWall(-3000);
  assert.equal(time.wallMs(), 997_000);
  assert.equal(time.monotonicUs(), 0);
});

test("an aborted sleep rejects with the signal's reason and leaves no timer behind", async () => {
  const time = new FakeTime();
  const abort = new AbortController();
  const sleeping = time.sleep(1000, abort.signal);
  await time.advance(10);
  const reason = new Error("enough");
  abort.abort(reason);
  await assert.rejects(sleeping, error => error === reason);
  assert.equal(time.armedTimers, 0);
  await assert.rejects(time.sleep(1, abort.signal), error => error === reason);
});

test("a cancelled timer does not fire", () => {
  const time = new FakeTime();
  let fired = false;
  time
    .setTimer(5, () => {
      fired = true;
    })
    .cancel();
  time.tick(10);
  assert.equal(fired, false);
  assert.equal(time.nextTimerMs, undefined);
});

test("tick fires timers without letting promises run in between", async () => {
  const time = new FakeTime();
  const log: string[] = [];
  time.setTimer(1, () => {
    Promise.resolve().then(() => log.push("promise"));
    log.push("first");
  });
  time.setTimer(2, () => log.push("second"));
  assert.equal(time.nextTimerMs, 1);
  time.tick(2);
  assert.deepEqual(log, ["first", "second"]);
  await time.advance(0);
  assert.deepEqual(log, ["first", "second", "promise"]);
});
