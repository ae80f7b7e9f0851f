import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../testing/fake-time.ts";
import { Interrupts } from "./interrupts.ts";

function recorded() {
  const time = new FakeTime();
  const calls: string[] = [];
  const interrupts = new Interrupts(time, { onFirst: () => calls.push("first"), onAgain: () => calls.push("again") });
  return { time, calls, interrupts };
}

test("the first interrupt aborts the signal, and a later one asks to stop at once", async () => {
  const { time, calls, interrupts } = recorded();
  assert.equal(interrupts.signal.aborted, false);
  interrupts.receive();
  await interrupts.first;
  assert.equal(interrupts.signal.aborted, true);
  time.tick(501);
  interrupts.receive();
  assert.deepEqual(calls, ["first", "again"]);
});

test("an interrupt within half a second of the first is the same one, passed on by a wrapper", () => {
  const { time, calls, interrupts } = recorded();
  interrupts.receive();
  interrupts.receive();
  time.tick(500);
  interrupts.receive();
  assert.deepEqual(calls, ["first"]);
});
