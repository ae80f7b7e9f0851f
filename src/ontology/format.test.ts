import assert from "node:assert/strict";
import { test } from "node:test";
import { detect, formatOfName } from "./format.ts";

function kindOf(text: string | Uint8Array): string {
  const found = detect(typeof text === "string" ? Buffer.from(text) : text);
  return found.kind === "ontology" ? found.format : found.kind === "packed" ? found.packing : `wrong ${found.content}`;
}

test("each format is detected by its first bytes", () => {
  const rdf = '<rdf:RDF xmlns:rdf="x">';
  assert.equal(kindOf(rdf), "rdf-xml");
  assert.equal(kindOf(`\uFEFF<?xml version="1.0"?>\n<!-- made by hand -->\n${rdf}`), "rdf-xml");
  assert.equal(kindOf(`<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [ <!ENTITY owl "http://x#" > ]>\n${rdf}`), "rdf-xml");
  assert.equal(kindOf('<?xml version="1.0"?><Ontology xmlns="x">'), "owl-xml");
  assert.equal(kindOf("format-version: 1.2\n"), "obo");
  assert.equal(kindOf("! a comment\n\nontology: x\n"), "obo");
  assert.equal(kindOf('{ "graphs" : [ {'), "obographs");
  assert.equal(kindOf('{"@context": {}}'), "json-ld");
  assert.equal(kindOf("@prefix a: <b> ."), "turtle");
  assert.equal(kindOf("# only\n# comments\nPREFIX a: <b>\n"), "turtle");
  assert.equal(kindOf("<http://a> <http://b> <http://c> ."), "turtle");
  assert.equal(kindOf("<http://a> a <http://c> ."), "turtle");
  assert.equal(kindOf("Prefix(:=<x>)\nOntology(<x>\n)"), "functional");
  assert.equal(kindOf(Uint8Array.of(0x1f, 0x8b, 8)), "gzip");
  assert.equal(kindOf(Uint8Array.of(0x50, 0x4b, 3, 4)), "zip");
});

test("content that is not an ontology is classified: HTML, listing, error, empty, binary, text", () => {
  assert.equal(kindOf("<!DOCTYPE html><html>"), "wrong html");
  assert.equal(kindOf("\n <html lang='en'>"), "wrong html");
  assert.equal(kindOf('<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML"><html>'), "wrong html");
  assert.equal(kindOf("<div><title>Just a moment...</title>"), "wrong html");
  assert.equal(kindOf("<?xml version='1.0'?><ListBucketResult xmlns='x'>"), "wrong xml-listing");
  assert.equal(kindOf('{"error": "not found"}'), "wrong json-error");
  assert.equal(kindOf(""), "wrong empty");
  assert.equal(kindOf("  \n "), "wrong empty");
  assert.equal(kindOf(Uint8Array.of(1, 0, 2)), "wrong binary");
  assert.equal(kindOf("Sorry, the page you asked for has moved."), "wrong text");
});

test("a file name suggests a format, also with .gz or .zip at its end", () => {
  assert.equal(formatOfName("hp.obo"), "obo");
  assert.equal(formatOfName("/a/b/chebi.owl.gz"), "owl");
  assert.equal(formatOfName("X.TTL"), "ttl");
  assert.equal(formatOfName("core"), undefined);
  assert.equal(formatOfName("archive.zip"), undefined);
});
