import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenIn } from "./seeds.ts";

test("no law is violated in the worlds of seeds 1801 to 2400", async () => {
  assert.deepEqual(await brokenIn(1801, 2400), []);
});
