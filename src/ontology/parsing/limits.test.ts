import assert from "node:assert/strict";
import { test } from "node:test";
import { verdict } from "../../../test/ontology/inspect-text.ts";
import { OWL } from "./rdf-vocabulary.ts";

test("nesting deeper than 2000 is refused before the parser reads on", async () => {
  const deep = (opening: string, closing: string, depth: number) => opening.repeat(depth) + closing.repeat(depth);
  const rdf = (depth: number) =>
    `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:">${deep("<e:A><e:p>", "</e:p></e:A>", depth)}</rdf:RDF>`;
  const cases: readonly (readonly [(depth: number) => string, string])[] = [
    [depth => `{"graphs":[{"nodes":[{"id":"a","meta":${deep("[", "]", depth)}}]}]}`, "values"],
    [rdf, "elements"],
    [
      depth =>
        `<Ontology xmlns="${OWL}"><SubClassOf><Class IRI="a"/>${deep("<ObjectComplementOf>", "</ObjectComplementOf>", depth)}</SubClassOf></Ontology>`,
      "elements",
    ],
    [depth => `<http://a/x> <http://a/p> ${deep("[ <http://a/p> ", "]", depth)} .`.replace("> ]", "> 1 ]"), "brackets"],
    [depth => `Ontology(SubClassOf(<a> ${deep("ObjectComplementOf(", ")", depth)}))`, "parentheses"],
    [depth => `Class: <a> SubClassOf: ${deep("(", ")", depth)}`, "brackets"],
  ];
  for (const [text, of] of cases) {
    assert.doesNotMatch(await verdict(text(100)), /deeper/, text(1));
    assert.match(await verdict(text(2001)), new RegExp(`${of} nested deeper than 2000`));
  }
});

test("JSON-LD nested deeper than 200 is refused, in every construct that nests", async () => {
  const context =
    '"@context":{"p":"http://p/","l":{"@id":"http://l","@container":"@list"},"n":"@nest","r":"@reverse","g":"@graph"}';
  const nested = (opening: string, closing: string, inner: string) => (depth: number) =>
    `{${context},"@id":"http://x",${opening.repeat(depth)}${inner}${closing.repeat(depth)}}`;
  const cases = [
    nested('"p":{', "}", '"p":1'),
    nested('"p":[{', "}]", '"p":1'),
    nested('"n":{', "}", '"p":1'),
    nested('"r":{"http://q":{', "}}", '"p":1'),
    nested('"p":{"@set":{', "}}", '"@value":1'),
    nested('"g":[{', "}]", '"p":1'),
    nested('"p":{"@list":[{', "}]}", '"p":1'),
    (depth: number) => `{${context},"@id":"http://x","l":${"[".repeat(depth)}1${"]".repeat(depth)}}`,
  ];
  for (const text of cases) {
    assert.doesNotMatch(await verdict(text(50)), /deeper|stack/, text(1));
    for (const depth of [201, 990]) assert.match(await verdict(text(depth)), /values nested deeper than 200/, text(1));
  }
});
