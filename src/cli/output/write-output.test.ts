import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Io, Output } from "../program.ts";
import { writeOutput } from "./write-output.ts";

function ioOf(write: Output["write"], outputClosed?: AbortSignal): Io {
  return { argv: [], env: {}, stdout: { write }, stderr: { write: () => true }, outputClosed };
}

test("a part is written when the reader has taken the one before it", async () => {
  let pending = 0;
  let mostPending = 0;
  const io = ioOf((_, onWritten) => {
    pending += 1;
    mostPending = Math.max(mostPending, pending);
    void setImmediate().then(() => {
      pending -= 1;
      onWritten?.();
    });
    return false;
  });
  for (const part of ["one", "two", "three"]) assert.equal(await writeOutput(io, part), true);
  assert.equal(mostPending, 1);
});

test("an output that has room is not waited for", async () => {
  const parts: string[] = [];
  const io = ioOf(text => parts.push(text));
  for (const part of ["one", "two"]) assert.equal(await writeOutput(io, part), true);
  assert.deepEqual(parts, ["one", "two"]);
});

test("nothing is written after the reader has closed the output", async () => {
  const closed = new AbortController();
  const parts: string[] = [];
  const io = ioOf((text, onWritten) => {
    parts.push(text);
    closed.abort();
    onWritten?.();
    return false;
  }, closed.signal);
  assert.equal(await writeOutput(io, "one"), false);
  assert.equal(await writeOutput(io, "two"), false);
  assert.deepEqual(parts, ["one"]);
});
