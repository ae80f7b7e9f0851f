import assert from "node:assert/strict";
import { test } from "node:test";
import { claimedFormat, FILE_FORMATS, formatOfName, packingOf, TARGET_FORMATS, targetFormatOf } from "./format.ts";

test("a name suggests a format by its extension, also when it is compressed", () => {
  for (const [name, format] of [
    ["hp.owl", "owl"],
    ["HP.OBO", "obo"],
    ["/a/b.c/hp.json.gz", "json"],
    ["hp.ttl.zip", "ttl"],
    ["core.rdf", "owl"],
    ["x.nq", "nq"],
    ["x", undefined],
    ["owl", undefined],
    ["x.html", undefined],
  ] as const) {
    assert.equal(formatOfName(name), format, name);
  }
});

test("every format has an extension that target_formats knows", () => {
  for (const format of FILE_FORMATS) assert.ok(TARGET_FORMATS.includes(targetFormatOf(format)));
});

test("only names and media types of formats that contain each other are claims", () => {
  assert.equal(claimedFormat("/x.nt", undefined), "n-triples");
  assert.equal(claimedFormat("/x.nq.gz", "text/plain"), "n-quads");
  assert.equal(claimedFormat("/x", "application/n-quads; charset=utf-8"), "n-quads");
  assert.equal(claimedFormat("/x.owl", "application/rdf+xml"), undefined);
  // Servers send text/turtle for TriG and N-Quads as well.
  assert.equal(claimedFormat("/x", "text/turtle"), undefined);
});

test("gzip, zip and zstd are recognised by their first bytes", () => {
  assert.equal(packingOf(Buffer.from([0x1f, 0x8b, 8])), "gzip");
  assert.equal(packingOf(Buffer.from("PK\x03\x04", "latin1")), "zip");
  assert.equal(packingOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd])), "zstd");
  assert.equal(packingOf(Buffer.from([0x5f, 0x2a, 0x4d, 0x18])), "zstd");
  assert.equal(packingOf(Buffer.from("PK")), undefined);
  assert.equal(packingOf(Buffer.from("")), undefined);
});
