import assert from "node:assert/strict";
import { test } from "node:test";
import { verdict } from "../../../test/ontology/inspect-text.ts";

test("the expressions and rules of Manchester syntax are accepted", async () => {
  const text = `Prefix: : <http://a/>
Prefix: xsd: <http://www.w3.org/2001/XMLSchema#>
Ontology: <http://a/x>
Import: <http://a/y>
Class: A
  EquivalentTo: B and (p some C) or not {i, j}, p min 2 C, p exactly 1, q value "x"^^xsd:string, p Self
  SubClassOf: Annotations: rdfs:comment "why" B
  HasKey: p, q
  DisjointUnionOf: B, C
ObjectProperty: p
  Characteristics: Functional, Transitive
  InverseOf: inverse (r)
  SubPropertyChain: p o r
DataProperty: q
  Range: integer[>= 5, < 10]
Individual: i
  Types: A
  Facts: p j, not q 3.5f, q "y"@en-GB
DisjointClasses: A, B, C
DifferentIndividuals: i, j
Rule: A(?x), p(?x, ?y) -> B(?y)
`;
  assert.equal(await verdict(text), "manchester");
});
