import assert from "node:assert/strict";
import { test } from "node:test";
import { metadataOf } from "./raw-metadata.ts";

test("types of every service become types of CSL, and an unknown type is left out, whatever its name", () => {
  assert.deepEqual(metadataOf({ type: "journal-article" }), { type: "article-journal" });
  assert.deepEqual(metadataOf({ type: "PostedContent" }), { type: "article" });
  for (const type of ["constructor", "__proto__", "toString", "peer-review", ""])
    assert.equal(metadataOf({ type }), undefined, type);
});

test("a long text is cut before a character that does not fit, never in the middle of it", () => {
  const title = `${"a".repeat(499)}\u{1d44e}b`;
  assert.equal(metadataOf({ title })?.title, "a".repeat(499));
});
