import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenIn } from "./seeds.ts";

test("no law is violated in the worlds of seeds 2001 to 3000", async () => {
  assert.deepEqual(await brokenIn(2_001, 3_000), []);
});
