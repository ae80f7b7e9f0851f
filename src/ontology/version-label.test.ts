import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { folderOf, labelOf } from "./version-label.ts";

test("a version is shortened to its date, its path segment or its text", () => {
  for (const [raw, label] of [
    ["releases/2026-11-01", "2026-11-01"],
    ["http://www.ebi.ac.uk/efo/releases/v3.93.0/efo.owl", "v3.93.0"],
    ["http://purl.obolibrary.org/obo/chebi/254/chebi.owl", "254"],
    ["1.2 (draft)", "1.2 (draft)"],
    ["hp/releases/v1", "v1"],
    ["https://h.example/onto/1.2/onto.owx", "1.2"],
    ["https://h.example/onto/1.3/onto.ttl.gz", "1.3"],
  ] as const) {
    assert.equal(labelOf(raw), label);
  }
});

test("for any version text, the folder stays inside its parent", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), text => {
      const name = folderOf(text);
      assert.match(name, /^[A-Za-z0-9+-][A-Za-z0-9._+-]*$/);
      assert.equal(join("/store/x", name), `/store/x/${name}`);
    }),
  );
  assert.equal(folderOf("../../etc/passwd"), "etc_passwd");
  assert.equal(folderOf(".."), "unnamed");
});
