/**
 * 200 works with the shipped limits against a simulated internet that enforces the documented limits of its services.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { harvest } from "../../test/harvest/harvest.ts";

test("a harvest of 200 works is never rejected, and takes at most 15 % more than the fastest schedule", async t => {
  const { internet, bound } = await harvest(t, 200);
  const { rejected, blocked } = await internet.ledger();
  assert.ok(bound);
  const { requests, budget, rates, fastestMs, tookMs } = bound;
  t.diagnostic(`${rejected} rejected, ${blocked} blocked`);
  t.diagnostic(
    `${requests} requests of ${budget} at ${rates}: ${tookMs} ms, ${(tookMs / fastestMs).toFixed(3)} of best`,
  );
  assert.deepEqual([rejected, blocked], [0, 0]);
  assert.ok(tookMs <= fastestMs * 1.15);
});
