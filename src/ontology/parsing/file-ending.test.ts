import assert from "node:assert/strict";
import { test } from "node:test";
import type { OntologyFileFormat } from "../format.ts";
import { endingProblem } from "./file-ending.ts";

const COMPLETE: readonly (readonly [OntologyFileFormat, string])[] = [
  ["obographs", '{"graphs":[{"nodes":[{"id":"x","lbl":"gene #1"}]}]}'],
  ["functional", 'Ontology(AnnotationAssertion(rdfs:label <x> "gene #1"))'],
  ["turtle", "<a> <b> <c> . # first # second"],
  ["turtle", "<a> <b> <c#d> .\n# the end\n"],
  ["rdf-xml", "</rdf:RDF> <!-- a # b -->\n"],
];

for (const [format, tail] of COMPLETE) {
  test(`${format} may end with ${JSON.stringify(tail.slice(-24))}`, () => {
    assert.equal(endingProblem(format, tail), undefined);
  });
}

test("a file that ends without its closing mark is incomplete, whatever follows a number sign", () => {
  const problem = (format: OntologyFileFormat, tail: string) => endingProblem(format, tail) ?? "complete";
  assert.match(problem("obographs", '{"graphs":[{"nodes":[{"id":"x","lbl":"gene'), /without a closing bracket/);
  assert.match(problem("turtle", "<a> <b> # c"), /without the final "\." of a statement/);
  assert.match(problem("functional", "Ontology(Declaration(Class(<a #b"), /without a closing parenthesis/);
});
