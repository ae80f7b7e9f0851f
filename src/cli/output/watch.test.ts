import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { Io } from "../program.ts";
import { watch } from "./watch.ts";

/** A terminal of ten lines, and somebody at it. */
function startScenario({ isTTY = true, isJson = false, rows = 10 } = {}) {
  const time = new FakeTime();
  const written: string[] = [];
  const stderrTexts: string[] = [];
  const listeners = new Set<() => void>();
  const gone = new AbortController();
  const io: Io = {
    argv: [],
    env: {},
    stdout: { write: text => written.push(text), isTTY, columns: 20, rows },
    stderr: { write: text => stderrTexts.push(text) },
    time,
    outputClosed: gone.signal,
    onInterrupt: listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return {
    time,
    written,
    stderrTexts,
    listeners,
    gone,
    begin: (render: () => Promise<string>) => watch(io, { render, isJson }),
    interrupt: () => {
      for (const listener of listeners) listener();
    },
  };
}

test("on a terminal each picture takes the place of the last, once a second, until Ctrl-C", async () => {
  const { time, written, begin, interrupt, listeners } = startScenario();
  let count = 0;
  const ended = begin(async () => {
    count += 1;
    return `picture ${count}\nof two lines\n`;
  });
  await time.advance(0);
  assert.deepEqual(written, ["picture 1\x1b[K\nof two lines\x1b[K\n\x1b[J"]);
  await time.advance(999);
  assert.equal(written.length, 1);
  await time.advance(1);
  assert.deepEqual(written.slice(1), ["\r\x1b[2Apicture 2\x1b[K\nof two lines\x1b[K\n\x1b[J"]);
  interrupt();
  assert.equal(await ended, 130);
  assert.equal(written.length, 2, "nothing is left to put right");
  assert.equal(listeners.size, 0);
  assert.equal(time.armedTimers, 0);
});

test("a line that the terminal breaks counts as many as it takes", async () => {
  const { time, written, begin, interrupt } = startScenario();
  const ended = begin(async () => `${"x".repeat(41)}\n`);
  await time.advance(1000);
  assert.ok(written[1]?.startsWith("\r\x1b[3A"));
  interrupt();
  await ended;
});

test("what is higher than the terminal is cut, because it could not be written over", async () => {
  const { time, written, begin, interrupt } = startScenario({ rows: 6 });
  const ended = begin(async () => "1\n2\n3\n4\n5\n6\n7\n");
  await time.advance(1000);
  assert.equal(written[0], "1\x1b[K\n2\x1b[K\n3\x1b[K\n4\x1b[K\n… and 3 more lines\x1b[K\n\x1b[J");
  assert.ok(written[1]?.startsWith("\r\x1b[5A"));
  interrupt();
  await ended;
});

test("elsewhere one picture follows the other, and no terminal is commanded", async () => {
  const { time, written, begin, interrupt } = startScenario({ isTTY: false });
  const ended = begin(async () => "one\ntwo\n");
  await time.advance(1000);
  assert.deepEqual(written, ["one\ntwo\n", "\none\ntwo\n"]);
  interrupt();
  assert.equal(await ended, 130);
});

test("programs get a line each time, on a terminal too", async () => {
  const { time, written, begin, interrupt } = startScenario({ isJson: true });
  const ended = begin(async () => "[]\n");
  await time.advance(1000);
  assert.deepEqual(written, ["[]\n", "[]\n"]);
  interrupt();
  await ended;
});

test("when nobody reads it any more it ends, and that is no failure", async () => {
  const { time, written, begin, gone } = startScenario({ isTTY: false });
  const ended = begin(async () => "one\n");
  await time.advance(0);
  gone.abort();
  assert.equal(await ended, 0);
  assert.equal(written.length, 1);
  assert.equal(time.armedTimers, 0);
});

test("a store that is away is told of, and looked for again", async () => {
  const { time, written, begin, interrupt } = startScenario({ isTTY: false });
  let isAway = true;
  const ended = begin(async () => {
    if (isAway) throw new StoreError("redis is away");
    return "back\n";
  });
  await time.advance(0);
  isAway = false;
  await time.advance(1000);
  assert.deepEqual(written, ["redis is away\n", "back\n"]);
  interrupt();
  await ended;
});

test("programs are not told of it in place of what they read", async () => {
  const { time, written, stderrTexts, begin, interrupt } = startScenario({ isJson: true });
  const ended = begin(async () => {
    throw new StoreError("redis is away");
  });
  await time.advance(0);
  assert.deepEqual([written, stderrTexts], [[], ["redis is away\n"]]);
  interrupt();
  await ended;
});

test("any other failure ends it", async () => {
  const { begin, listeners } = startScenario();
  await assert.rejects(
    begin(async () => {
      throw new RangeError("a mistake of ours");
    }),
    RangeError,
  );
  assert.equal(listeners.size, 0);
});
