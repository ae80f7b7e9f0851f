import assert from "node:assert/strict";
import { test } from "node:test";
import { parseText } from "../../../test/ontology/parse-text.ts";
import { OWL } from "./rdf-vocabulary.ts";

test("a plain literal of OWL/XML has its language in an attribute, and no datatype", async () => {
  const literal = (attributes: string, text: string) =>
    `<AnnotationAssertion><AnnotationProperty IRI="n"/><IRI>A</IRI><Literal ${attributes} datatypeIRI="http://www.w3.org/1999/02/22-rdf-syntax-ns#PlainLiteral">${text}</Literal></AnnotationAssertion>`;
  const axioms = literal('xml:lang="es"', "a") + literal("", "b@c");
  const parsed = await parseText(`<Ontology xmlns="${OWL}" xml:base="http://a/" ontologyIRI="x">${axioms}</Ontology>`);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  assert.deepEqual(parsed.lines.slice(1), ['<http://a/A> <http://a/n> "a"@es .', '<http://a/A> <http://a/n> "b@c" .']);
});
