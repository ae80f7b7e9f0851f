import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWith } from "../../../test/ontology/parse-text.ts";
import { RDF } from "../../../test/ontology/sample-files.ts";

test("half of a surrogate pair is a syntax problem, wherever it stands", async () => {
  const problem = { problem: "line 1: half of a surrogate pair" };
  for (const pieces of [["<?xml \ud800"], ["<?xml \udbff", "\uffff"], ["<a>\ud800</a>"], ["<!--", "\udc00-->"]])
    assert.deepEqual(await parseWith("xml", pieces), problem, JSON.stringify(pieces));
});

test("a surrogate pair may span two chunks", async () => {
  const text = RDF.replace("<rdf:RDF", "<!-- \u{1f600} --><rdf:RDF");
  assert.deepEqual(
    await parseWith(
      "xml",
      [...Array(text.length).keys()].map(at => text.charAt(at)),
    ),
    await parseWith("xml", [text]),
  );
});
