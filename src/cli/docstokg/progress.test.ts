import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../../testing/fake-time.ts";
import { Progress } from "./progress.ts";
import { RunCounts } from "./run-counts.ts";

const queues = [{ host: "api.example.org", role: "metadata", inFlightRequests: 2, waiting: 14, freeInMs: 800 }];

function progressOn(isTTY: boolean, isQuiet = false, hasColour = false) {
  const time = new FakeTime();
  const counts = new RunCounts();
  const written: string[] = [];
  const out = { write: (text: string) => written.push(text), isTTY, columns: 60 };
  const progress = new Progress({
    out,
    time,
    counts,
    queues: () => queues,
    timeLeftMs: () => 95_000,
    isQuiet,
    hasColour,
  });
  return { time, counts, progress, written };
}

test("on a terminal a few lines are redrawn: progress, rate, time left, and the busiest hosts", async () => {
  const { time, counts, progress, written } = progressOn(true);
  counts.wanted = 40;
  progress.start();
  for (let count = 0; count < 9; count += 1) counts.countSettled("done", "ok", 1000);
  counts.countSettled("failed", "no-copy", 0);
  await time.advance(200);
  assert.deepEqual(written, [
    "10/40 works, 1 failed, 50/s, 9.0 kB, about 1 min 35 s left\x1b[K\n" +
      "  api.example.org metadata: 2 in flight, 14 queued, next in 0.8 s\x1b[K\n\x1b[J",
  ]);
  await time.advance(200);
  assert.ok(written[1]?.startsWith("\r\x1b[3A"), "the second line takes two rows of 60 columns");
  progress.log("stdin:3: invalid");
  assert.deepEqual(written.slice(2, 4), ["\r\x1b[3A\x1b[J", "stdin:3: invalid\n"]);
  progress.stop();
  assert.equal(time.armedTimers, 0);
});

test("in a log the progress is one plain line every five seconds", async () => {
  const { time, counts, progress, written } = progressOn(false, false, false);
  counts.wanted = 2;
  progress.start();
  await time.advance(4999);
  assert.deepEqual(written, []);
  counts.countSettled("done", "ok", 10);
  await time.advance(5001);
  assert.deepEqual(written, [
    "1/2 works, 0 failed, 0.2/s, 10 B, about 1 min 35 s left\n",
    "1/2 works, 0 failed, 0.1/s, 10 B, about 1 min 35 s left\n",
  ]);
  progress.stop();
});

test("in a log the last line has the final counts", async () => {
  const { time, counts, progress, written } = progressOn(false);
  counts.wanted = 3;
  progress.start();
  counts.countSettled("done", "ok", 10);
  await time.advance(6000);
  counts.countSettled("done", "ok", 10);
  progress.stop();
  progress.stop();
  // An interrupted run has no time left.
  assert.equal(written.at(-1), "2/3 works, 0 failed, 0.3/s, 20 B\n");
  assert.equal(written.length, 2);
});

test("in a log a run adds no last line if it is shorter than five seconds, or if the counts have not changed", async () => {
  const short = progressOn(false);
  short.counts.wanted = 1;
  short.progress.start();
  short.counts.countSettled("done", "ok", 10);
  short.progress.stop();
  assert.deepEqual(short.written, []);
  const unchanged = progressOn(false);
  unchanged.counts.wanted = 1;
  unchanged.counts.countSettled("done", "ok", 10);
  unchanged.progress.start();
  await unchanged.time.advance(6000);
  unchanged.progress.stop();
  assert.deepEqual(unchanged.written, ["1/1 works, 0 failed, 0.2/s, 10 B\n"]);
});

test("a quiet run draws no progress, and prints logged lines", async () => {
  const { time, progress, written } = progressOn(true, true);
  progress.start();
  await time.advance(60_000);
  progress.log("resolver core skipped");
  progress.stop();
  assert.deepEqual(written, ["resolver core skipped\n"]);
});
