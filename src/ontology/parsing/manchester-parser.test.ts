import assert from "node:assert/strict";
import { test } from "node:test";
import { verdict } from "../../../test/ontology/inspect-text.ts";
import { parseText } from "../../../test/ontology/parse-text.ts";

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

/** The statements of a file about the names of `http://a/`, without their declarations. */
async function statementsOf(frames: string): Promise<readonly string[]> {
  const parsed = await parseText(`Prefix: : <http://a/>\nPrefix: rdfs: <http://rdfs/>\n${frames}`, "manchester");
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  return parsed.lines.filter(line => !line.includes("#type>")).map(line => line.replaceAll("http://a/", ""));
}

test("an item with annotations gives the statement of the item", async () => {
  const frames = `Class: A
  SubClassOf: Annotations: rdfs:comment "why"@en, p "5"^^q, r 5  B, Annotations: p C  D, E
  Annotations: Annotations: Annotations: p "1" p C rdfs:label "a"@en, rdfs:comment "b"
ObjectProperty: p
  Domain: Annotations: rdfs:comment true A
Individual: i
  Types: Annotations: rdfs:comment "x" A
  Facts: Annotations: rdfs:comment "x" p j
`;
  const subClass = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>";
  assert.deepEqual(await statementsOf(frames), [
    `<A> ${subClass} <B> .`,
    `<A> ${subClass} <D> .`,
    `<A> ${subClass} <E> .`,
    '<A> <http://rdfs/label> "a"@en .',
    '<A> <http://rdfs/comment> "b" .',
    "<p> <http://www.w3.org/2000/01/rdf-schema#domain> <A> .",
    "<i> <p> <j> .",
  ]);
});

test("axioms of several names and rules may have annotations", async () => {
  const text = `Prefix: : <http://a/>
Class: A
DisjointClasses: Annotations: p "why"  A, B
Rule: Annotations: p "why"  A(?x) -> B(?x)
`;
  assert.equal(await verdict(text), "manchester");
});

test("annotations without a value or without their item are problems", async () => {
  const problemOf = async (item: string) => {
    const parsed = await parseText(`Prefix: : <http://a/>\nClass: A\n  SubClassOf: ${item}\nClass: B\n`, "manchester");
    return "problem" in parsed ? parsed.problem : JSON.stringify(parsed);
  };
  assert.match(await problemOf("Annotations: p"), /^line 4: incomplete annotation; expected a property and a value$/);
  assert.match(await problemOf('Annotations: p "x"'), /^line 4: value missing after "SubClassOf:"$/);
  assert.match(await problemOf("Annotations: , B"), /^line 3: incomplete annotation/);
  assert.match(await problemOf('Annotations: p "x" B C'), /^line 3: unexpected "http:\/\/a\/C" after a name$/);
});
