import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenIn } from "./seeds.ts";

test("no law is violated in the worlds of seeds 5001 to 7500", async () => {
  assert.deepEqual(await brokenIn(5001, 7500), []);
});
