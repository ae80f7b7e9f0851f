import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenIn } from "./seeds.ts";

test("no law is violated in the worlds of seeds 7501 to 10000", async () => {
  assert.deepEqual(await brokenIn(7501, 10000), []);
});
