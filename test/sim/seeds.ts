import assert from "node:assert/strict";
import { type BrokenSeed, runInThread } from "../../sim/batch.ts";

/**
 * The law violations in the worlds of these seeds. The seeds are divided over several test files, so that they run in
 * parallel.
 */
export async function brokenIn(first: number, last: number): Promise<readonly BrokenSeed[]> {
  const count = last - first + 1;
  const { seeds, requests, broken } = await runInThread({ from: first, count });
  assert.equal(seeds, count);
  assert.ok(requests > 10 * count, `${requests} requests`);
  return broken;
}
