import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { test } from "node:test";
import { systemTime } from "./system-time.ts";

// These tests use the real clock, because they test it; none of them asserts an upper bound.

test("elapsed time is in whole microseconds and never decreases", () => {
  let last = systemTime.monotonicUs();
  for (let i = 0; i < 10_000; i += 1) {
    const now = systemTime.monotonicUs();
    assert.ok(Number.isSafeInteger(now));
    assert.ok(now >= last);
    last = now;
  }
});

test("a sleep is never shorter than requested, although timers may be early", async () => {
  for (const ms of [0, 0.4, 1, 2.5, 7]) {
    const start = systemTime.monotonicUs();
    await systemTime.sleep(ms);
    assert.ok(systemTime.monotonicUs() - start >= ms * 1000);
  }
});

test("a timer with a delay above the maximum of Node does not fire at once", async () => {
  let fired = false;
  const timer = systemTime.setTimer(2 ** 31 + 5, () => {
    fired = true;
  });
  await systemTime.sleep(5);
  timer.cancel();
  assert.equal(fired, false);
});

test("a timer with a negative delay fires, without a warning", () => {
  const file = JSON.stringify(import.meta.resolve("./system-time.ts"));
  const script = `import(${file}).then(({ systemTime }) => systemTime.setTimer(-2, () => console.log("fired")))`;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  assert.deepEqual({ stdout, stderr }, { stdout: "fired\n", stderr: "" });
});

test("the wall clock is in epoch milliseconds", () => {
  assert.equal(systemTime.wallMs(), Math.floor(systemTime.wallMs()));
  assert.ok(systemTime.wallMs() > Date.UTC(2024, 0, 1));
});

test("two processes of one machine read the same clock", () => {
  const before = systemTime.machineUs();
  const file = JSON.stringify(import.meta.resolve("./system-time.ts"));
  const script = `import(${file}).then(({ systemTime }) => console.log(systemTime.machineUs()))`;
  const there = Number(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" }));
  const after = systemTime.machineUs();
  assert.ok(Number.isSafeInteger(there));
  assert.ok(before <= there && there <= after, `${before} ${there} ${after}`);
});

test("an overdue timer fires as soon as possible, and Node prints no warning", async t => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  await new Promise<void>(resolve => systemTime.setTimer(-4, resolve));
  assert.deepEqual(warnings, []);
});
