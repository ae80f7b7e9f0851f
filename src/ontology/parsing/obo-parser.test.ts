import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "../../../test/ontology/inspect-text.ts";
import { parseText } from "../../../test/ontology/parse-text.ts";
import type { OntologyFileFormat } from "../format.ts";

const OBO = "http://purl.obolibrary.org/obo/";
const OWL = "http://www.w3.org/2002/07/owl#";
const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
const OIO = "http://www.geneontology.org/formats/oboInOwl#";

/** The statements of clauses of a stanza, without its declaration. */
async function statementsOf(stanza: string, clauses: string): Promise<readonly string[]> {
  const parsed = await parseText(`ontology: x\n\n[${stanza}]\nid: X:1\n${clauses}\n`, "obo");
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  return parsed.lines.slice(2).map(line => line.replace(`<${OBO}X_1> `, ""));
}

test("comments, subsets, alternatives and authors of a term are statements", async () => {
  const clauses = `comment: Not \\"this\\" one. ! a remark
subset: slim ! Small
consider: X:2 ! two
equivalent_to: X:3
disjoint_from: X:4 ! four
created_by: ab
creation_date: 2010-02-02T12:00:00Z
constructor: 1
replaced_by:`;
  assert.deepEqual(await statementsOf("Term", clauses), [
    `<${RDFS}comment> "Not \\"this\\" one." .`,
    `<${OIO}inSubset> <${OBO}x#slim> .`,
    `<${OIO}consider> <${OBO}X_2> .`,
    `<${OWL}equivalentClass> <${OBO}X_3> .`,
    `<${OWL}disjointWith> <${OBO}X_4> .`,
    `<${OIO}created_by> "ab" .`,
    `<${OIO}creation_date> "2010-02-02T12:00:00Z" .`,
  ]);
});

test("domain, range, inverse and characteristics of a relation are statements", async () => {
  const clauses = `domain: X:2
range: X:3
inverse_of: X:4 ! has part
equivalent_to: X:5
disjoint_from: X:6
is_transitive: true
is_functional: false
is_metadata_tag: true`;
  assert.deepEqual(await statementsOf("Typedef", clauses), [
    `<${RDFS}domain> <${OBO}X_2> .`,
    `<${RDFS}range> <${OBO}X_3> .`,
    `<${OWL}inverseOf> <${OBO}X_4> .`,
    `<${OWL}equivalentProperty> <${OBO}X_5> .`,
    `<${OWL}propertyDisjointWith> <${OBO}X_6> .`,
    `<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <${OWL}TransitiveProperty> .`,
    `<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <${OWL}AnnotationProperty> .`,
  ]);
});

test("a flag that is neither true nor false is a problem", async () => {
  const parsed = await parseText("[Typedef]\nid: X:1\nis_transitive: maybe\n", "obo");
  assert.deepEqual(parsed, { problem: "line 3: is_transitive is maybe" });
});

test("remarks, authors, subsets and types of synonyms in the header are statements", async () => {
  const header = `format-version: 1.2
saved-by: ab
auto-generated-by: OBO-Edit
default-namespace: things
remark: For tests.
subsetdef: slim "Small one"
synonymtypedef: abbr "abbreviation" EXACT
ontology: x

[Term]
id: X:1
`;
  const parsed = await parseText(header, "obo");
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  const ontology = `<${OBO}x.owl>`;
  assert.deepEqual(parsed.lines.slice(1, -1), [
    `${ontology} <${OIO}hasOBOFormatVersion> "1.2" .`,
    `${ontology} <${OIO}savedBy> "ab" .`,
    `${ontology} <${OIO}auto-generated-by> "OBO-Edit" .`,
    `${ontology} <${OIO}default-namespace> "things" .`,
    `${ontology} <${RDFS}comment> "For tests." .`,
    `<${OBO}x#slim> <${RDFS}subPropertyOf> <${OIO}SubsetProperty> .`,
    `<${OBO}x#slim> <${RDFS}comment> "Small one" .`,
    `<${OBO}x#abbr> <${RDFS}subPropertyOf> <${OIO}SynonymTypeProperty> .`,
    `<${OBO}x#abbr> <${RDFS}label> "abbreviation" .`,
  ]);
});

test("a header with too many tags is a problem: a part of it would lack imports", async () => {
  const parsed = await parseText(`${"import: a\n".repeat(10_001)}\n[Term]\nid: X:1\n`, "obo");
  assert.deepEqual(parsed, { problem: "line 10001: header with more than 10000 tags" });
});

const XSD = "http://www.w3.org/2001/XMLSchema#";
const SUB_CLASS = `<${RDFS}subClassOf>`;

test("a clause whose qualifiers make it a larger class expression gives no statement", async () => {
  const clauses = `is_a: X:2 {gci_relation="part_of", gci_filler="NCBITaxon:9606"} ! two
is_a: X:3 {source="A, gci_filler=B", comment="\\"{"} ! three
relationship: part_of X:4 {gci_filler="NCBITaxon:7955", gci_relation="part_of"} ! four
relationship: part_of X:4 {all_only="true"}
relationship: has_part X:4 {maxCardinality="0"}
relationship: has_part X:4 {cardinality=3}
relationship: has_part X:4 {minCardinality="1"}`;
  assert.deepEqual(await statementsOf("Term", clauses), [`${SUB_CLASS} <${OBO}X_3> .`]);
});

test("a relationship of an instance or a relation is a plain statement", async () => {
  const expected = [`<${OBO}x#knows> <${OBO}X_2> .`];
  assert.deepEqual(await statementsOf("Instance", "relationship: knows X:2 ! two"), expected);
  assert.deepEqual(await statementsOf("Typedef", "relationship: knows X:2"), expected);
});

test("cross references and alternative ids are written without their escapes", async () => {
  const clauses = `xref: Wikipedia:Foo_\\(bar\\) "a b" {source="c"}
xref: http\\://x.example/a\\ b "text"
alt_id: X\\:5`;
  assert.deepEqual(await statementsOf("Term", clauses), [
    `<${OIO}hasDbXref> "Wikipedia:Foo_(bar)" .`,
    `<${OIO}hasDbXref> "http://x.example/a b" .`,
    `<${OIO}hasAlternativeId> "X:5" .`,
  ]);
});

test("the type of a value without quotation marks is kept", async () => {
  const clauses = `property_value: X:p http://x.example/1 xsd:anyURI
property_value: X:p 5 xsd:string
property_value: X:p X:2`;
  assert.deepEqual(await statementsOf("Term", clauses), [
    `<${OBO}X_p> "http://x.example/1"^^<${XSD}anyURI> .`,
    `<${OBO}X_p> "5" .`,
    `<${OBO}X_p> <${OBO}X_2> .`,
  ]);
});

test("an id with an underscore after its prefix has the IRI of the OBO standard, and prefixes of the W3C are known", async () => {
  const clauses = 'inverse_of: OBO_REL:has_part\nrange: xsd:string\nproperty_value: skos:note "n" xsd:string';
  assert.deepEqual(await statementsOf("Typedef", clauses), [
    `<http://www.w3.org/2002/07/owl#inverseOf> <${OBO}OBO_REL#_has_part> .`,
    `<${RDFS}range> <${XSD}string> .`,
    '<http://www.w3.org/2004/02/skos/core#note> "n" .',
  ]);
});

test("a relation without a prefix has the IRI of its cross reference, also in terms before its definition", async () => {
  const text = `ontology: x

[Term]
id: X:1
relationship: part_of X:2
relationship: near X:3

[Typedef]
id: part_of
xref: OTHER:1
xref: BFO:0000050 "part of"
xref: OTHER:2
is_a: near

[Typedef]
id: near
`;
  const statementsWith = async (storedFormat: OntologyFileFormat | undefined) => {
    const found: string[] = [];
    const onStatement = (subject: string, predicate: string, object: string) =>
      found.push(`${subject} ${predicate} ${object}`);
    assert.equal((await inspect(text, { onStatement, storedFormat })).kind, "valid");
    return found.filter(statement => /onProperty|subPropertyOf/.test(statement));
  };
  const expected = [
    `_:b1 ${OWL}onProperty ${OBO}BFO_0000050`,
    `_:b2 ${OWL}onProperty ${OBO}x#near`,
    `${OBO}BFO_0000050 ${RDFS}subPropertyOf ${OBO}x#near`,
  ];
  assert.deepEqual(await statementsWith(undefined), expected);
  assert.deepEqual(await statementsWith("obo"), expected);
});
