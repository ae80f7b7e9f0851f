import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenIn } from "./seeds.ts";

test("no law is violated in the worlds of seeds 3001 to 4000", async () => {
  assert.deepEqual(await brokenIn(3_001, 4_000), []);
});
