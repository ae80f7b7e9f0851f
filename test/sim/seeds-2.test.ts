import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenIn } from "./seeds.ts";

test("no law is violated in the worlds of seeds 1001 to 2000", async () => {
  assert.deepEqual(await brokenIn(1_001, 2_000), []);
});
