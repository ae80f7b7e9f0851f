import assert from "node:assert/strict";
import { test } from "node:test";
import { BusyError, RateLimitExceeded } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { runTaskPool, type WaitMode } from "./task-pool.ts";

const details = { host: "h", role: "metadata", constraint: { kind: "window", owner: "h", limit: "1/SECOND" } } as const;
const full = (retryAfterMs: number) => new RateLimitExceeded({ ...details, retryAfterMs, maxWaitMs: 0 });

test("a refused item is deferred, and other items go first", async () => {
  const time = new FakeTime();
  const log: string[] = [];
  const results = await runTaskPool(
    ["a1", "a2", "b1"],
    async (item, mode) => {
      log.push(`${item} ${mode}`);
      if (item === "a2" && mode === "fail") throw full(1000);
      return item.toUpperCase();
    },
    { time, parallel: 1 },
  );
  assert.deepEqual(results, ["A1", "A2", "B1"]);
  assert.deepEqual(log, ["a1 fail", "a2 fail", "b1 fail", "a2 block"]);
});

test("if no item is due, the one that is due soonest waits in the queue", async () => {
  const time = new FakeTime();
  const blocked: string[] = [];
  const waits: Record<string, number> = { late: 3000, soon: 500 };
  await runTaskPool(
    ["late", "soon"],
    async (item, mode) => {
      if (mode === "fail") throw full(waits[item] ?? 0);
      blocked.push(item);
    },
    { time, parallel: 1 },
  );
  assert.deepEqual(blocked, ["soon", "late"]);
});

test("an item that became due while another one waited is attempted in mode fail again", async () => {
  const time = new FakeTime();
  const log: string[] = [];
  await runTaskPool(
    ["x", "y"],
    async (item, mode) => {
      log.push(`${item} ${mode}`);
      if (log.length <= 2) throw full(item === "x" ? 500 : 800);
      // Waiting in the queue takes a second.
      if (mode === "block") await time.advance(1000);
    },
    { time, parallel: 1 },
  );
  assert.deepEqual(log, ["x fail", "y fail", "x block", "y fail"]);
});

test("an item refused for a concurrency slot is attempted once more, then waits in the queue", async () => {
  const time = new FakeTime();
  const modes: WaitMode[] = [];
  await runTaskPool(
    ["x"],
    async (_item, mode) => {
      modes.push(mode);
      if (mode === "fail") throw new BusyError({ ...details, maxWaitMs: 0 });
    },
    { time, parallel: 4 },
  );
  assert.equal(modes.at(-1), "block");
  assert.ok(modes.length <= 3);
});

test("an error that is not a refusal ends the pool, and so does an abort", async () => {
  const time = new FakeTime();
  const broken = runTaskPool([1], async () => Promise.reject(new Error("broken")), { time, parallel: 1 });
  await assert.rejects(broken, { message: "broken" });
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(
    runTaskPool([1], async () => 1, { time, parallel: 1, signal }),
    { message: "enough" },
  );
  assert.deepEqual(await runTaskPool([], async () => 1, { time, parallel: 3 }), []);
});
