import assert from "node:assert/strict";
import { test } from "node:test";
import { enforcerOf } from "./enforcer.ts";

test("each server model enforces a rate by its own algorithm", () => {
  const rate = { limit: 2, windowMs: 1000 };
  const passes = (model: Parameters<typeof enforcerOf>[0], ...atMs: readonly number[]) => {
    const server = enforcerOf(model, rate);
    return atMs.map(ms => {
      const has = server.has(1, ms * 1000);
      if (has) server.count(1, ms * 1000);
      return has ? "yes" : "no";
    });
  };
  assert.deepEqual(passes("fixed-window", 900, 950, 999, 1000), ["yes", "yes", "no", "yes"]);
  assert.deepEqual(passes("sliding-log", 900, 950, 1000, 1899, 1900), ["yes", "yes", "no", "no", "yes"]);
  assert.deepEqual(passes("tokens", 0, 0, 499, 500), ["yes", "yes", "no", "yes"]);
  assert.deepEqual(passes("gcra", 0, 0, 499, 500), ["yes", "yes", "no", "yes"]);
  assert.deepEqual(passes("two-buckets", 900, 950, 1000, 1499, 1500), ["yes", "yes", "no", "no", "yes"]);
});
