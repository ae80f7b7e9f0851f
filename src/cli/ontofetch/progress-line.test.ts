import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../../testing/fake-time.ts";
import { ProgressLine } from "./progress-line.ts";

function setUp(isTTY: boolean) {
  let text = "";
  const time = new FakeTime();
  const stderr = { isTTY, write: (piece: string) => (text += piece) };
  const io = { argv: [], env: {}, stdout: { write: () => assert.fail("stdout is only for results") }, stderr };
  return { progress: new ProgressLine(io, time), time, written: () => text };
}

test("on a terminal one line is repainted at most ten times per second, and cleared before other output", async () => {
  const { progress, time, written } = setUp(true);
  progress.bytes("hp", 500_000, 2_000_000);
  progress.bytes("hp", 600_000, 2_000_000);
  assert.equal(written(), "\r\u001b[Khp 25 % of 2.0 MB");
  await time.advance(100);
  progress.bytes("go", 1500, undefined);
  assert.ok(written().endsWith("\r\u001b[Khp 30 % of 2.0 MB   go 1.5 kB"));
  progress.done("hp");
  assert.ok(written().endsWith("\r\u001b[K"));
  const length = written().length;
  progress.clear();
  assert.equal(written().length, length);
});

test("in a pipe no progress is printed", () => {
  const { progress, written } = setUp(false);
  progress.bytes("hp", 1, 2);
  progress.done("hp");
  assert.equal(written(), "");
});
