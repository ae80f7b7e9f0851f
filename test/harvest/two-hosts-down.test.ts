import assert from "node:assert/strict";
import { test } from "node:test";
import { DOWN, harvest } from "./harvest.ts";
import { keyOf } from "./processes.ts";

test("with two hosts down every other work is done, and those hosts get few requests", async t => {
  const { works, lost, internet, settled, done } = await harvest(t, 50);
  assert.equal(lost.length, 2);
  const failed = [...settled].filter(([, reason]) => reason !== "ok").map(([key]) => key);
  assert.deepEqual(failed.sort(), lost.map(keyOf).sort());
  const right = new Map(works.map(work => [keyOf(work), work.file.sha256]));
  assert.equal(done.length, works.length - lost.length);
  for (const { key, sha256 } of done) assert.equal(sha256, right.get(key));
  const ledger = await internet.ledger();
  assert.deepEqual([ledger.blocked, ledger.faults], [0, []]);
  for (const host of DOWN) assert.ok((ledger.hosts[host]?.requests ?? 0) <= 8, host);
});
