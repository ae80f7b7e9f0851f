import assert from "node:assert/strict";
import { type BrokenSeed, runInThread } from "../../sim/batch.ts";

/**
 * The laws that are broken in the worlds of these seeds. The seeds of every test run are sliced into several test files, so
 * that the processes of the runner share them.
 */
export async function brokenIn(first: number, last: number): Promise<readonly BrokenSeed[]> {
  const count = last - first + 1;
  const { seeds, requests, broken } = await runInThread({ from: first, count });
  assert.equal(seeds, count);
  assert.ok(requests > 10 * count, `${requests} requests`);
  return broken;
}
