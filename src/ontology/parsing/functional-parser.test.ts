import assert from "node:assert/strict";
import { test } from "node:test";
import { parseText } from "../../../test/ontology/parse-text.ts";

const OWL = "http://www.w3.org/2002/07/owl#";
const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
const TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

/** The statements of axioms about names of `http://a/`. */
async function statementsOf(axioms: string): Promise<readonly string[]> {
  const parsed = await parseText(`Prefix(:=<http://a/>)\nOntology(<http://a/x>\n${axioms}\n)\n`);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  return parsed.lines.slice(1).map(line => line.replaceAll("http://a/", ""));
}

test("axioms that relate two names are statements, and those of more names are not", async () => {
  const axioms = `EquivalentObjectProperties(:p :q)
EquivalentDataProperties(:d :e)
DisjointObjectProperties(:p :r)
DisjointDataProperties(:d :f)
AnnotationPropertyDomain(:n :A)
AnnotationPropertyRange(:n :B)
SameIndividual(:i :j)
DifferentIndividuals(:i :k)
DifferentIndividuals(:i :k :l)`;
  assert.deepEqual(await statementsOf(axioms), [
    `<p> <${OWL}equivalentProperty> <q> .`,
    `<d> <${OWL}equivalentProperty> <e> .`,
    `<p> <${OWL}propertyDisjointWith> <r> .`,
    `<d> <${OWL}propertyDisjointWith> <f> .`,
    `<n> <${RDFS}domain> <A> .`,
    `<n> <${RDFS}range> <B> .`,
    `<i> <${OWL}sameAs> <j> .`,
    `<i> <${OWL}differentFrom> <k> .`,
  ]);
});

test("the characteristics of a property are its types", async () => {
  const axioms =
    "FunctionalDataProperty(:d)\nTransitiveObjectProperty(:p)\nTransitiveObjectProperty(ObjectInverseOf(:p))";
  assert.deepEqual(await statementsOf(axioms), [
    `<d> ${TYPE} <${OWL}FunctionalProperty> .`,
    `<p> ${TYPE} <${OWL}TransitiveProperty> .`,
  ]);
});

test("the class of a key may be an abbreviated name before the groups of its properties", async () => {
  const axioms = "HasKey(:A (:p) ())\nHasKey(Annotation(:n :m) :A () (:d :e))\nFunctionalDataProperty(:d)";
  assert.deepEqual(await statementsOf(axioms), [`<d> ${TYPE} <${OWL}FunctionalProperty> .`]);
});

test("a plain literal of OWL has a language or no datatype", async () => {
  const literal = (text: string) => `AnnotationAssertion(:n :A "${text}"^^rdf:PlainLiteral)`;
  const axioms = ["a@es", "b@", "c", "d@e f"].map(literal).join("\n");
  assert.deepEqual(await statementsOf(axioms), [
    '<A> <n> "a"@es .',
    '<A> <n> "b" .',
    '<A> <n> "c" .',
    '<A> <n> "d@e f" .',
  ]);
});
