import assert from "node:assert/strict";
import { test } from "node:test";
import { mirrorCopies } from "./mirrors.ts";

function copiesOf(mirror: string, version = "2026-01-16") {
  const source = { id: "hp", resolver: "obo", targetFormats: [], extras: {}, mirrors: [mirror] };
  const [copy] = mirrorCopies(source, { version, format: "rdf-xml" }, "/project");
  return copy;
}

test("a folder or an https URL has the layout of a store", () => {
  assert.deepEqual(copiesOf("/srv/ontologies/"), { kind: "file", path: "/srv/ontologies/hp/2026-01-16/hp.owl" });
  assert.deepEqual(copiesOf("mirror"), { kind: "file", path: "/project/mirror/hp/2026-01-16/hp.owl" });
  const url = "https://mirror.example.org/obo/hp/2026-01-16/hp.owl";
  assert.deepEqual(copiesOf("https://mirror.example.org/obo"), { kind: "url", url });
});

test("a bucket is its public address", () => {
  const url = "https://our-ontologies.s3.amazonaws.com/obo/hp/2026-01-16/hp.owl";
  assert.deepEqual(copiesOf("s3://our-ontologies/obo"), { kind: "url", url });
});

test("a template names the parts, and a version cannot leave its place", () => {
  const template = "https://mirror.example.org/{version}/{id}?file={file}";
  const url = "https://mirror.example.org/2026-01-16/hp?file=hp.owl";
  assert.deepEqual(copiesOf(template), { kind: "url", url });
  const hostile = copiesOf("/srv/{version}/{file}", "../../etc");
  assert.deepEqual(hostile, { kind: "file", path: "/srv/etc/hp.owl" });
});
