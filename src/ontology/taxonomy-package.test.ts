import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { serve } from "../../test/http/kit.ts";
import { projectFor } from "../../test/ontology/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { makeZip } from "../testing/internet/zip.ts";
import { inspectFile } from "./file-inspection.ts";
import { inspectTaxonomyPackage, isTaxonomyPackage } from "./taxonomy-package.ts";

const METADATA = `<?xml version="1.0" encoding="UTF-8"?>
<tp:taxonomyPackage xml:lang="en" xmlns:tp="http://xbrl.org/2016/taxonomy-package">
  <tp:identifier>https://taxonomy.example.org/farm/2026</tp:identifier>
  <tp:name>Farm Reporting</tp:name>
  <tp:version>2026.1</tp:version>
  <tp:license href="https://taxonomy.example.org/licence" name="Open"/>
  <tp:publicationDate>2026-03-31</tp:publicationDate>
  <tp:entryPoints>
    <tp:entryPoint>
      <tp:name>All reports</tp:name>
      <tp:entryPointDocument href="https://taxonomy.example.org/farm/all.xsd"/>
    </tp:entryPoint>
    <tp:entryPoint>
      <tp:name>Of another authority</tp:name>
      <tp:entryPointDocument href="https://other.example.org/base.xsd"/>
    </tp:entryPoint>
  </tp:entryPoints>
</tp:taxonomyPackage>`;
const CATALOG = `<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
  <rewriteURI uriStartString="https://taxonomy.example.org/" rewritePrefix="../elsewhere/"/>
  <rewriteURI uriStartString="https://taxonomy.example.org/farm/" rewritePrefix="../farm/"/>
</catalog>`;
const SCHEMA = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xbrli="http://www.xbrl.org/2003/instance"
    targetNamespace="https://taxonomy.example.org/farm">
  <xs:import namespace="http://www.xbrl.org/2003/instance" schemaLocation="http://www.xbrl.org/2003/xbrl-instance-2003-12-31.xsd"/>
  <xs:element name="Cows" substitutionGroup="xbrli:item" type="xbrli:decimalItemType"/>
  <xs:element name="Sheep" substitutionGroup="xbrli:item" type="xbrli:decimalItemType"/>
  <xs:element name="NotAConcept" type="xs:string"/>
  <xs:complexType name="t"><xs:sequence><xs:element name="Inner" substitutionGroup="xbrli:item"/></xs:sequence></xs:complexType>
</xs:schema>`;
const LINKBASE = `<link:linkbase xmlns:link="http://www.xbrl.org/2003/linkbase"/>`;
const FILES = {
  "farm-2026/META-INF/taxonomyPackage.xml": METADATA,
  "farm-2026/META-INF/catalog.xml": CATALOG,
  "farm-2026/farm/all.xsd": SCHEMA,
  "farm-2026/farm/labels.xml": LINKBASE,
};

async function inspected(zip: Uint8Array, depth: "full" | "end" | "none" = "full") {
  const path = join(temporaryFolder("ontofetch"), "x");
  await writeFile(path, zip);
  return inspectFile(path, depth);
}

async function problemOf(changes: Readonly<Record<string, string | undefined>>): Promise<string> {
  const files = Object.entries({ ...FILES, ...changes }).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, text] as const],
  );
  const found = await inspected(makeZip(Object.fromEntries(files)));
  return found.kind === "valid" ? "valid" : found.problem;
}

test("a taxonomy package is valid, with its version, its licence and the number of its concepts", async () => {
  const found = await inspected(makeZip(FILES));
  assert.ok(found.kind === "valid", JSON.stringify(found));
  assert.deepEqual(
    [found.format, found.version?.raw, found.checks],
    ["xbrl-package", "2026.1", { depth: "full", statements: 2, of: "concepts" }],
  );
  assert.deepEqual(found.facts, {
    ontology_iri: "https://taxonomy.example.org/farm/2026",
    version_iri: null,
    version_info: "2026.1",
    date: "2026-03-31",
    title: "Farm Reporting",
    licence: "https://taxonomy.example.org/licence",
    imports: [],
    classes: 0,
    properties: 0,
    individuals: 0,
    concepts: 2,
    terms: 2,
    deprecated_terms: 0,
    languages: {},
  });
});

test("with check none and end only the metadata and the entry points are read", async () => {
  const zip = makeZip({ ...FILES, "farm-2026/farm/all.xsd": "no XML" });
  for (const depth of ["none", "end"] as const) {
    const found = await inspected(zip, depth);
    assert.ok(found.kind === "valid", JSON.stringify(found));
    assert.deepEqual([found.version?.label, found.checks, found.facts], ["2026.1", { depth }, null]);
  }
});

test("a damaged package is refused with the file and the reason", async () => {
  const top = "farm-2026/";
  const cases: readonly (readonly [string, Readonly<Record<string, string | undefined>>, RegExp])[] = [
    ["entry point", { [`${top}farm/all.xsd`]: undefined }, /entry point https:.*all\.xsd is not in the package/],
    ["schema", { [`${top}farm/all.xsd`]: SCHEMA.slice(0, -12) }, /farm-2026\/farm\/all\.xsd: .*unclosed tag/],
    ["no schema", { [`${top}farm/all.xsd`]: LINKBASE }, /all\.xsd: line 1: root element .* is not an XML schema/],
    ["metadata", { [`${top}META-INF/taxonomyPackage.xml`]: "<a/>" }, /root element a is not taxonomyPackage of XBRL/],
    [
      "identifier",
      { [`${top}META-INF/taxonomyPackage.xml`]: METADATA.replace(/<tp:identifier>.*/, "") },
      /has no identifier/,
    ],
  ];
  assert.equal(await problemOf({}), "valid");
  for (const [name, changes, expected] of cases) {
    const problem = await problemOf(changes);
    assert.match(problem, /^invalid xbrl-package: /, name);
    assert.match(problem, expected, name);
  }
});

test("every damaged byte of a linkbase, and every truncation, is found", async () => {
  const zip = makeZip(FILES);
  const name = Buffer.from("farm-2026/farm/labels.xml");
  const data = zip.indexOf(name) + name.length;
  const damaged = Buffer.from(zip);
  damaged.writeUInt8(damaged.readUInt8(data + 12) ^ 0x20, data + 12);
  const found = await inspected(damaged);
  assert.equal(found.kind, "broken", JSON.stringify(found));
  for (const length of [zip.length - 1, zip.length - 30, data + 10]) {
    const cut = await inspected(zip.subarray(0, length));
    assert.notEqual(cut.kind, "valid", `${length} of ${zip.length} bytes`);
  }
});

test("a package with any damaged bytes is judged, never an error", async () => {
  const zip = makeZip(FILES);
  const path = join(temporaryFolder("ontofetch"), "x");
  const change = fc.record({ at: fc.nat(zip.length - 1), byte: fc.nat(255) });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async changes => {
      const damaged = Buffer.from(zip);
      for (const { at, byte } of changes) damaged.writeUInt8(byte, at);
      await writeFile(path, damaged);
      assert.ok(["valid", "broken", "wrong-content"].includes((await inspectFile(path, "full")).kind));
    }),
    { numRuns: 300 },
  );
});

test("a package that would unpack to 300 times its size is refused before it is unpacked", async () => {
  const found = await inspected(makeZip({ ...FILES, "farm-2026/zeros.bin": Buffer.alloc(40_000_000) }));
  assert.ok(found.kind === "broken", JSON.stringify(found));
  assert.match(found.problem, /compression ratio exceeds 300/);
});

test("a zip file of very many tiny files is no package, and is refused by their number", async () => {
  const tiny = Array.from({ length: 20_000 }, (_, index) => [`farm-2026/${index}`, ""] as const);
  const path = join(temporaryFolder("ontofetch"), "x");
  await writeFile(path, makeZip({ ...FILES, ...Object.fromEntries(tiny) }));
  assert.equal(await isTaxonomyPackage(path), false);
  const problem = await inspectTaxonomyPackage(path, { isFull: true });
  assert.match(String(problem), /^the package has 20004 files in \d+ bytes, limit is \d+ files$/);
});

test("ontofetch pulls a taxonomy package as it is, whatever format the other sources want", async t => {
  const zip = makeZip(FILES);
  const server = await serve(t, (_request, response) => response.end(zip));
  const sources =
    `allow_private: true\ndefaults: { target_formats: [owl] }\nsources:\n` +
    `  farm: { resolver: xbrl, extras: { url: "${server.origin}/farm-2026.zip" } }\n`;
  const project = await projectFor({ network: {} }, sources);
  const [result] = await project.pull();
  assert.ok(result?.outcome === "fetched", JSON.stringify(result));
  const stored = await readFile(join(project.folder, "ontologies", "farm", "2026.1", "farm.zip"));
  assert.deepEqual(stored, zip);
  const lock = JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"));
  const { format, version, sha256, target_formats } = lock.ontologies.farm;
  assert.deepEqual(
    [format, version, sha256, target_formats],
    ["xbrl-package", "2026.1", createHash("sha256").update(zip).digest("hex"), ["zip"]],
  );
  const [again] = await project.pull({ frozen: true });
  assert.equal(again?.outcome, "kept", JSON.stringify(again));
});
