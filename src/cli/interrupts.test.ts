import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../testing/fake-time.ts";
import { Interrupts, interruptible } from "./interrupts.ts";

function recorded() {
  const time = new FakeTime();
  const calls: string[] = [];
  const interrupts = new Interrupts(time, { onFirst: () => calls.push("first"), onAgain: () => calls.push("again") });
  return { time, calls, interrupts };
}

test("the first interrupt aborts the signal, and a later one calls for a stop", async () => {
  const { time, calls, interrupts } = recorded();
  assert.equal(interrupts.signal.aborted, false);
  interrupts.receive();
  await interrupts.first;
  assert.equal(interrupts.signal.aborted, true);
  time.tick(501);
  interrupts.receive();
  assert.deepEqual(calls, ["first", "again"]);
});

test("an interrupt within half a second of the first counts as the same one, forwarded by a wrapper", () => {
  const { time, calls, interrupts } = recorded();
  interrupts.receive();
  interrupts.receive();
  time.tick(500);
  interrupts.receive();
  assert.deepEqual(calls, ["first"]);
});

test("an interruptible command ends with 130 after the first interrupt, and the second one exits", async () => {
  const time = new FakeTime();
  const listeners = new Set<() => void>();
  const exits: number[] = [];
  const io = {
    argv: [],
    env: {},
    stdout: { write: () => true },
    stderr: { write: () => true },
    time,
    onInterrupt: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    exit: (code: number) => exits.push(code),
  };
  const ended = interruptible(io, signal => {
    const { promise, reject } = Promise.withResolvers<0>();
    signal.addEventListener("abort", () => {
      time.tick(501);
      for (const listener of listeners) listener();
      reject(signal.reason);
    });
    return promise;
  });
  for (const listener of listeners) listener();
  assert.equal(await ended, 130);
  assert.deepEqual(exits, [130]);
  assert.equal(listeners.size, 0);
});

test("an error of an interruptible command that was not interrupted is thrown", async () => {
  const io = { argv: [], env: {}, stdout: { write: () => true }, stderr: { write: () => true } };
  await assert.rejects(
    interruptible(io, async () => {
      throw new RangeError("a defect");
    }),
    RangeError,
  );
});
