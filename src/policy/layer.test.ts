import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_NODES, objectLayer } from "./layer.ts";

test("an object that contains itself several times is refused after the largest number of values", () => {
  const options: Record<string, unknown> = {};
  for (const key of ["a", "b", "c"]) options[key] = options;
  const { assignments, problems } = objectLayer(options, "test");
  assert.ok(assignments.length <= MAX_NODES);
  assert.deepEqual(
    problems.map(({ message }) => message),
    ["nested more than 12 levels deep", `more than ${MAX_NODES} values`],
  );
});

test("an object with more values than a file may have is refused", () => {
  const hosts = Object.fromEntries(Array.from({ length: MAX_NODES }, (_, index) => [`h${index}`, 1]));
  const { problems } = objectLayer({ hosts }, "test");
  assert.deepEqual(
    problems.map(({ message }) => message),
    [`more than ${MAX_NODES} values`],
  );
});
