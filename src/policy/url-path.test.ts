import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { normalizedPath, pathsAbove } from "./url-path.ts";

test("every spelling of a path that servers treat as the same one is normalized to one text", () => {
  for (const path of [
    "/cdx",
    "/cdx/",
    "//cdx",
    "/%63dx",
    "/CDX",
    "/x/../cdx",
    "/./cdx",
    "/%2563dx/../cdx",
    "/cdx?q=/x#y",
    "\\cdx",
  ])
    assert.equal(normalizedPath(path), "/cdx", path);
  assert.equal(normalizedPath("/a%2Fb"), "/a/b");
  assert.equal(normalizedPath("/../../etc"), "/etc");
  for (const root of ["", "/", "//", "/..", "/?a=1"]) assert.equal(normalizedPath(root), "", root);
});

test("normalizing a normalized path changes nothing, whatever was sent", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("/", "a", "B", ".", "%", "2", "5", "F", "?", ";", "\\") }), text => {
      const once = normalizedPath(text);
      const isStable = normalizedPath(once) === once;
      // A decoded percent sign may make a new escape; such a path is in no policy.
      assert.ok(isStable || once.includes("%"));
      assert.match(once, /^(?:\/[^/\\?#]+)*$/);
    }),
    { numRuns: 5000 },
  );
});

test("a path is below itself, each of its parents, and the path before a path parameter", () => {
  const path = "/a/b;v=1/c";
  assert.deepEqual([...pathsAbove(path, 10)], [path, "/a/b;v=1", "/a/b", "/a"]);
  assert.deepEqual([...pathsAbove("", 10)], []);
});

test("of the paths above a long path, only those are tried that are short enough", () => {
  const path = "/a/b;v=1/c";
  assert.deepEqual([...pathsAbove(path, 9)], ["/a/b;v=1", "/a/b", "/a"]);
  assert.deepEqual([...pathsAbove(path, 8)], ["/a/b;v=1", "/a/b", "/a"]);
  assert.deepEqual([...pathsAbove(path, 7)], ["/a/b", "/a"]);
  assert.deepEqual([...pathsAbove(path, 1)], []);
  assert.deepEqual([...pathsAbove("/a".repeat(8000), 4)], ["/a/a", "/a"]);
});
