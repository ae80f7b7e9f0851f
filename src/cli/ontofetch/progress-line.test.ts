import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../../testing/fake-time.ts";
import { ProgressLine } from "./progress-line.ts";

function setUp(isTTY: boolean) {
  let text = "";
  const time = new FakeTime();
  const stderr = { isTTY, write: (piece: string) => (text += piece) };
  return { progress: new ProgressLine({ stderr }, time), time, written: () => text };
}

test("on a terminal one line is repainted at most ten times per second, and cleared before other output", async () => {
  const { progress, time, written } = setUp(true);
  progress.update("hp", 500_000, 2_000_000);
  progress.update("hp", 600_000, 2_000_000);
  assert.equal(written(), "hp 25 % of 2.0 MB\x1b[K\n\x1b[J");
  await time.advance(100);
  progress.update("go", 1500, undefined);
  assert.ok(written().endsWith("\r\x1b[1Ahp 30 % of 2.0 MB   go 1.5 kB\x1b[K\n\x1b[J"));
  progress.done("hp");
  assert.ok(written().endsWith("\r\x1b[1A\x1b[J"));
  const length = written().length;
  progress.clear();
  assert.equal(written().length, length);
});

test("in a pipe no progress is printed", () => {
  const { progress, written } = setUp(false);
  progress.update("hp", 1, 2);
  progress.done("hp");
  assert.equal(written(), "");
});
