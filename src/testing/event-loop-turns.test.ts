import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemTime } from "../time/system-time.ts";
import { EventLoopTurns } from "./event-loop-turns.ts";

const nowMs = () => systemTime.monotonicUs() / 1000;
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test("data that arrives while the process is blocked several times may be as old as the first block", async t => {
  const turns = new EventLoopTurns();
  turns.start();
  t.after(() => turns.stop());
  await sleep(5);
  const beforeMs = nowMs();
  block(20);
  await new Promise(setImmediate);
  block(20);
  assert.ok(turns.earliestArrivalMs <= beforeMs, "longer ago than the longest of the two blocks");
});

test("data that arrives at an idle process is as new as its last turns", async t => {
  const turns = new EventLoopTurns();
  turns.start();
  t.after(() => turns.stop());
  const beforeMs = nowMs();
  // Three turns are enough, and nothing else wakes the process.
  await sleep(500);
  assert.ok(turns.earliestArrivalMs > beforeMs);
});
