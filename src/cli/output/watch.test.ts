import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { Io } from "../program.ts";
import { watch } from "./watch.ts";

/** A watch on a terminal with ten lines that can be interrupted. */
function startScenario({ isTTY = true, isJson = false, columns = 20, rows = 10 } = {}) {
  const time = new FakeTime();
  const written: string[] = [];
  const stderrTexts: string[] = [];
  const listeners = new Set<() => void>();
  const closed = new AbortController();
  const io: Io = {
    argv: [],
    env: {},
    stdout: { write: text => written.push(text), isTTY, columns, rows },
    stderr: { write: text => stderrTexts.push(text) },
    time,
    outputClosed: closed.signal,
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
    closed,
    begin: (render: () => Promise<string>) => watch(io, { render, isJson }),
    interrupt: () => {
      for (const listener of listeners) listener();
    },
  };
}

test("on a terminal each text replaces the one before, every second, until Ctrl-C", async () => {
  const { time, written, begin, interrupt, listeners } = startScenario();
  let count = 0;
  const ended = begin(async () => {
    count += 1;
    return `text ${count}\nof two lines\n`;
  });
  await time.advance(0);
  assert.deepEqual(written, ["text 1\x1b[K\nof two lines\x1b[K\n\x1b[J"]);
  await time.advance(999);
  assert.equal(written.length, 1);
  await time.advance(1);
  assert.deepEqual(written.slice(1), ["\r\x1b[2Atext 2\x1b[K\nof two lines\x1b[K\n\x1b[J"]);
  interrupt();
  assert.equal(await ended, 130);
  assert.equal(written.length, 2, "nothing has to be restored");
  assert.equal(listeners.size, 0);
  assert.equal(time.armedTimers, 0);
});

test("a line that the terminal wraps counts as the rows that it takes", async () => {
  const { time, written, begin, interrupt } = startScenario();
  const ended = begin(async () => `${"x".repeat(41)}\n`);
  await time.advance(1000);
  assert.ok(written[1]?.startsWith("\r\x1b[3A"));
  interrupt();
  await ended;
});

test("a text higher than the terminal is cut, because it could not be replaced", async () => {
  const { time, written, begin, interrupt } = startScenario({ rows: 6 });
  const ended = begin(async () => "1\n2\n3\n4\n5\n6\n7\n");
  await time.advance(1000);
  assert.equal(written[0], "1\x1b[K\n2\x1b[K\n3\x1b[K\n4\x1b[K\n… and 3 more lines\x1b[K\n\x1b[J");
  assert.ok(written[1]?.startsWith("\r\x1b[5A"));
  interrupt();
  await ended;
});

test("a terminal that reports no size counts as one of 80 columns and 24 rows", async () => {
  const { time, written, begin, interrupt } = startScenario({ columns: 0, rows: 0 });
  const ended = begin(async () => `${"x".repeat(81)}\n`);
  await time.advance(1000);
  assert.equal(written[0], `${"x".repeat(81)}\x1b[K\n\x1b[J`);
  assert.ok(written[1]?.startsWith("\r\x1b[2A"));
  interrupt();
  await ended;
});

test("in a pipe the texts follow each other, without control characters", async () => {
  const { time, written, begin, interrupt } = startScenario({ isTTY: false });
  const ended = begin(async () => "one\ntwo\n");
  await time.advance(1000);
  assert.deepEqual(written, ["one\ntwo\n", "\none\ntwo\n"]);
  interrupt();
  assert.equal(await ended, 130);
});

test("with JSON each refresh is one line, on a terminal too", async () => {
  const { time, written, begin, interrupt } = startScenario({ isJson: true });
  const ended = begin(async () => "[]\n");
  await time.advance(1000);
  assert.deepEqual(written, ["[]\n", "[]\n"]);
  interrupt();
  await ended;
});

test("a watch ends with 0 when its reader closes stdout", async () => {
  const { time, written, begin, closed } = startScenario({ isTTY: false });
  const ended = begin(async () => "one\n");
  await time.advance(0);
  closed.abort();
  assert.equal(await ended, 0);
  assert.equal(written.length, 1);
  assert.equal(time.armedTimers, 0);
});

test("Ctrl-C ends a watch whose store does not answer, and a later answer or error is not printed", async () => {
  for (const isFailing of [false, true]) {
    const { time, written, stderrTexts, begin, interrupt } = startScenario();
    const answer = Promise.withResolvers<string>();
    const ended = begin(() => answer.promise);
    await time.advance(0);
    interrupt();
    assert.equal(await ended, 130);
    if (isFailing) answer.reject(new RangeError("closed"));
    else answer.resolve("late\n");
    await time.advance(1000);
    assert.deepEqual([written, stderrTexts, time.armedTimers], [[], [], 0]);
  }
});

test("a store error is printed, and the next refresh tries again", async () => {
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

test("with JSON a store error is printed on stderr", async () => {
  const { time, written, stderrTexts, begin, interrupt } = startScenario({ isJson: true });
  const ended = begin(async () => {
    throw new StoreError("redis is away");
  });
  await time.advance(0);
  assert.deepEqual([written, stderrTexts], [[], ["redis is away\n"]]);
  interrupt();
  await ended;
});

test("any other error ends the watch", async () => {
  const { begin, listeners } = startScenario();
  await assert.rejects(
    begin(async () => {
      throw new RangeError("a defect");
    }),
    RangeError,
  );
  assert.equal(listeners.size, 0);
});
