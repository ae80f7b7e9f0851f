import assert from "node:assert/strict";
import { test } from "node:test";
import { runBatch } from "../../sim/batch.ts";

// Not among those that run alone: they measure what reaches a server, and when, and this keeps every core busy.
test("ten thousand worlds break no law", async t => {
  const { seeds, requests, broken } = await runBatch({ from: 1, count: 10_000 });
  t.diagnostic(`${seeds} seeds, ${requests} requests`);
  assert.equal(seeds, 10_000);
  assert.ok(requests > 100_000, `${requests} requests`);
  assert.deepEqual(broken, []);
});
