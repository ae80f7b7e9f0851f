import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect, verdict } from "../../../test/ontology/inspect-text.ts";
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

test("relations between two names and characteristics are statements", async () => {
  const frames = `Class: A
  EquivalentTo: B, C or D
  DisjointWith: C
ObjectProperty: p
  EquivalentTo: q
  DisjointWith: r
  InverseOf: s
Individual: i
  SameAs: j
  DifferentFrom: k
DisjointClasses: A, E
DisjointClasses: A, B, C
EquivalentClasses: A, p some B
SameIndividual: Annotations: p "why" i, l
DifferentIndividuals: i, m
EquivalentProperties: p, t
`;
  const owl = (name: string) => `<http://www.w3.org/2002/07/owl#${name}>`;
  assert.deepEqual(await statementsOf(frames), [
    `<A> ${owl("equivalentClass")} <B> .`,
    `<A> ${owl("disjointWith")} <C> .`,
    `<p> ${owl("equivalentProperty")} <q> .`,
    `<p> ${owl("propertyDisjointWith")} <r> .`,
    `<p> ${owl("inverseOf")} <s> .`,
    `<i> ${owl("sameAs")} <j> .`,
    `<i> ${owl("differentFrom")} <k> .`,
    `<A> ${owl("disjointWith")} <E> .`,
    `<i> ${owl("sameAs")} <l> .`,
    `<i> ${owl("differentFrom")} <m> .`,
    `<p> ${owl("equivalentProperty")} <t> .`,
  ]);
  const parsed = await parseText(
    "Prefix: : <http://a/>\nObjectProperty: p\n  Characteristics: Functional, Transitive\n",
  );
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  const type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
  assert.deepEqual(parsed.lines.slice(1), [
    `<http://a/p> ${type} ${owl("FunctionalProperty")} .`,
    `<http://a/p> ${type} ${owl("TransitiveProperty")} .`,
  ]);
});

test("a facet needs no space after its comparison", async () => {
  const frames = 'DataProperty: d\n  Range: integer[<5, >=-3], integer[<"5"^^integer], integer[<+5]\n  Domain: A\n';
  assert.deepEqual(await statementsOf(frames), ["<d> <http://www.w3.org/2000/01/rdf-schema#domain> <A> ."]);
});

test("a plain literal of OWL has a language or no datatype", async () => {
  const plain = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#PlainLiteral>";
  const frames = `Class: A\n  Annotations: p "a@es"^^${plain}, p "b@"^^${plain}, p "c@d e"^^${plain}\n`;
  assert.deepEqual(await statementsOf(frames), ['<A> <p> "a"@es .', '<A> <p> "b" .', '<A> <p> "c@d e" .']);
});

test("axioms of several names and rules are counted", async () => {
  const text = "Prefix: : <http://a/>\nOntology: <http://a/x>\nRule: A(?x) -> B(?x)\nDisjointClasses: A, B, C\n";
  const found = await inspect(text);
  assert.equal(found.kind === "valid" ? found.checks.statements : found.problem, 2);
});
