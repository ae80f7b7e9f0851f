import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { SAMPLES } from "../../../test/ontology/sample-files.ts";
import { folderOf, labelOf, versionOf } from "./file-version.ts";

for (const [format, text, label] of SAMPLES) {
  test(`${format}: the version is found in the beginning of a file`, () => {
    assert.equal(versionOf(format, text)?.label, label);
  });
}

test("a version is shortened to its date, its path segment or its text", () => {
  for (const [raw, label] of [
    ["releases/2026-11-01", "2026-11-01"],
    ["http://www.ebi.ac.uk/efo/releases/v3.93.0/efo.owl", "v3.93.0"],
    ["http://purl.obolibrary.org/obo/chebi/254/chebi.owl", "254"],
    ["1.2 (draft)", "1.2 (draft)"],
    ["hp/releases/v1", "v1"],
  ] as const) {
    assert.equal(labelOf(raw), label);
  }
});

test("entities that a file declares are expanded once", () => {
  const head = `<!DOCTYPE rdf:RDF [ <!ENTITY obo "http://o/" > <!ENTITY a "&a;&a;" > ]>
    <owl:versionIRI rdf:resource="&obo;x/releases/2026-01-02/x.owl"/>`;
  assert.equal(versionOf("rdf-xml", head)?.raw, "http://o/x/releases/2026-01-02/x.owl");
  assert.equal(versionOf("rdf-xml", head.replace("&obo;x", "&a;x"))?.raw, "&a;&a;x/releases/2026-01-02/x.owl");
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
