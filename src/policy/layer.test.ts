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
    ["nested more than 12 levels deep"],
  );
});

test("a list that contains itself, or has more items than a file may have values, is refused and not kept", () => {
  const endless: unknown[] = [];
  endless.push(endless);
  const rule: Record<string, unknown> = { header: "x-limit" };
  rule["body"] = rule;
  for (const list of [endless, [rule]]) {
    const { assignments, problems } = objectLayer({ hosts: { "a.example": list } }, "test");
    assert.deepEqual(
      problems.map(({ path, message }) => `${path}: ${message}`),
      ["hosts.a.example: nested more than 12 levels deep"],
    );
    assert.equal(
      assignments.some(({ value }) => Array.isArray(value)),
      false,
    );
  }
  for (const list of [new Array(1e9), Array(MAX_NODES).fill("1/SECOND")])
    assert.deepEqual(
      objectLayer({ list }, "test").problems.map(({ message }) => message),
      [`more than ${MAX_NODES} values`],
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
