import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWith } from "../../../test/ontology/parse-text.ts";

const VERSION = "<http://www.w3.org/2002/07/owl#versionIRI>";

async function versionsOf(...graphs: readonly object[]): Promise<readonly string[]> {
  const parsed = await parseWith("json", [JSON.stringify({ graphs })]);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  return parsed.lines.filter(line => line.includes(VERSION)).map(line => line.replace(` ${VERSION}`, ""));
}

test("the version of a graph belongs to its own id, wherever the id stands", async () => {
  const nodes = [{ id: "urn:n" }];
  const metaOf = (version: string) => ({ meta: { version } });
  const both = ["<urn:a> <urn:a:1> .", "<urn:b> <urn:b:1> ."];
  const idFirst = { id: "urn:a", ...metaOf("urn:a:1"), nodes };
  const metaFirst = { ...metaOf("urn:b:1"), nodes, id: "urn:b" };
  assert.deepEqual(await versionsOf(idFirst, metaFirst), both);
  assert.deepEqual(await versionsOf({ ...metaOf("urn:a:1"), id: "urn:a", nodes }, metaFirst), both);
});

test("the version of a graph without an id is not that of another graph", async () => {
  const nodes = [{ id: "urn:n" }];
  const named = { id: "urn:a", meta: { version: "urn:a:1" }, nodes };
  const unnamed = { meta: { version: "urn:b:1" }, nodes };
  assert.deepEqual(await versionsOf(named, unnamed), ["<urn:a> <urn:a:1> ."]);
  assert.deepEqual(await versionsOf(unnamed, named), ["<urn:a> <urn:a:1> ."]);
});

test("an edge inverseOf is a statement about two properties, and a predicate without an IRI is left out", async () => {
  const edge = (pred: string) => ({ sub: "urn:p", pred, obj: "urn:q" });
  const edges = [edge("inverseOf"), edge("unknown")];
  const parsed = await parseWith("json", [
    JSON.stringify({ graphs: [{ id: "urn:g", nodes: [{ id: "urn:p" }], edges }] }),
  ]);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  assert.deepEqual(
    parsed.lines.filter(line => line.includes("urn:q")),
    ["<urn:p> <http://www.w3.org/2002/07/owl#inverseOf> <urn:q> ."],
  );
});

test("a property has the type of its propertyType, and comments, subsets and cross references are statements", async () => {
  const meta = { comments: ["c"], subsets: ["urn:s"], xrefs: [{ val: "A:1" }, {}] };
  const nodes = [
    { id: "urn:a", type: "PROPERTY", propertyType: "ANNOTATION" },
    { id: "urn:d", type: "PROPERTY", propertyType: "DATA" },
    { id: "urn:o", type: "PROPERTY", propertyType: "OBJECT" },
    { id: "urn:p", type: "PROPERTY" },
    { id: "urn:c", type: "CLASS", meta },
  ];
  const parsed = await parseWith("json", [JSON.stringify({ graphs: [{ id: "urn:g", nodes }] })]);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  const type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
  const owl = "http://www.w3.org/2002/07/owl#";
  const oio = "http://www.geneontology.org/formats/oboInOwl#";
  assert.deepEqual(parsed.lines.slice(1), [
    `<urn:a> ${type} <${owl}AnnotationProperty> .`,
    `<urn:d> ${type} <${owl}DatatypeProperty> .`,
    `<urn:o> ${type} <${owl}ObjectProperty> .`,
    `<urn:p> ${type} <${owl}ObjectProperty> .`,
    `<urn:c> ${type} <${owl}Class> .`,
    '<urn:c> <http://www.w3.org/2000/01/rdf-schema#comment> "c" .',
    `<urn:c> <${oio}inSubset> <urn:s> .`,
    `<urn:c> <${oio}hasDbXref> "A:1" .`,
  ]);
});

test("an edge between individuals is a plain statement, and one between classes a restriction", async () => {
  const nodes = [
    { id: "urn:i", type: "INDIVIDUAL" },
    { id: "urn:c", type: "CLASS" },
  ];
  const edges = ["urn:i", "urn:c"].map(sub => ({ sub, pred: "urn:p", obj: "urn:o" }));
  const parsed = await parseWith("json", [JSON.stringify({ graphs: [{ id: "urn:g", nodes, edges }] })]);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  assert.deepEqual(
    parsed.lines.filter(line => /urn:p|subClassOf/.test(line)),
    [
      "<urn:i> <urn:p> <urn:o> .",
      "<urn:c> <http://www.w3.org/2000/01/rdf-schema#subClassOf> _:b1 .",
      "_:b1 <http://www.w3.org/2002/07/owl#onProperty> <urn:p> .",
    ],
  );
});
