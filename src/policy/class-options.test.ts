import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownOptions } from "./class-options.ts";

test("an unknown option is a problem with a suggestion, unless its value is undefined", () => {
  const given = { store: "memory", stroe: "memory", colour: 1, timeout: undefined };
  assert.deepEqual(unknownOptions(given, ["store", "time"], "RateLimiter", "outer"), [
    { where: "RateLimiter", path: "outer.stroe", message: "unknown option: did you mean store?" },
    { where: "RateLimiter", path: "outer.colour", message: "unknown option: the options are store, time" },
  ]);
});
