/**
 * The axioms of OWL 2, which have the same names in OWL/XML and in functional syntax. An axiom that relates named terms
 * gives statements. An axiom with a larger class expression is counted, but gives no statement.
 */
import type { BlankNodes } from "./blank-nodes.ts";
import { languageTag } from "./language-tag.ts";
import {
  ANNOTATION_PROPERTY,
  NAMED_INDIVIDUAL,
  OBJECT_PROPERTY,
  OWL,
  OWL_CLASS,
  PLAIN_LITERAL,
  RDF_TYPE,
  RDFS,
  SUB_CLASS_OF,
  SUB_PROPERTY_OF,
} from "./rdf-vocabulary.ts";
import { nodeKind, type OnStatement } from "./statement.ts";

/** An operand of an axiom. `some` is `ObjectSomeValuesFrom(property filler)` with two names. */
export type Operand =
  | { readonly kind: "iri"; readonly iri: string }
  | { readonly kind: "entity"; readonly type: string; readonly iri: string }
  | { readonly kind: "literal"; readonly text: string; readonly language: string; readonly datatype: string }
  | { readonly kind: "some"; readonly property: string; readonly filler: string }
  | { readonly kind: "other" };

/** The types of entities, by the names of their declarations. */
export const ENTITY_TYPES: ReadonlyMap<string, string> = new Map([
  ["Class", OWL_CLASS],
  ["ObjectProperty", OBJECT_PROPERTY],
  ["DataProperty", `${OWL}DatatypeProperty`],
  ["AnnotationProperty", ANNOTATION_PROPERTY],
  ["NamedIndividual", NAMED_INDIVIDUAL],
  ["Datatype", `${RDFS}Datatype`],
]);

/** Every axiom with the smallest number of its operands. */
export const AXIOMS: ReadonlyMap<string, number> = new Map([
  ["Declaration", 1],
  ...["SubClassOf", "EquivalentClasses", "DisjointClasses", "SubObjectPropertyOf", "EquivalentObjectProperties"].map(
    two,
  ),
  ...["DisjointObjectProperties", "ObjectPropertyDomain", "ObjectPropertyRange", "InverseObjectProperties"].map(two),
  ...["SubDataPropertyOf", "EquivalentDataProperties", "DisjointDataProperties", "DataPropertyDomain"].map(two),
  ...["DataPropertyRange", "DatatypeDefinition", "ClassAssertion", "SubAnnotationPropertyOf"].map(two),
  ...["AnnotationPropertyDomain", "AnnotationPropertyRange", "SameIndividual", "DifferentIndividuals"].map(two),
  ...["DisjointUnion", "HasKey", "DLSafeRule", "DGRule", "DescriptionGraph"].map(one),
  ...["FunctionalObjectProperty", "InverseFunctionalObjectProperty", "ReflexiveObjectProperty"].map(one),
  ...["IrreflexiveObjectProperty", "SymmetricObjectProperty", "AsymmetricObjectProperty"].map(one),
  ...["TransitiveObjectProperty", "FunctionalDataProperty"].map(one),
  ...["ObjectPropertyAssertion", "NegativeObjectPropertyAssertion", "DataPropertyAssertion"].map(three),
  ...["NegativeDataPropertyAssertion", "AnnotationAssertion"].map(three),
]);

const BINARY: Readonly<Record<string, string>> = {
  SubClassOf: SUB_CLASS_OF,
  SubObjectPropertyOf: SUB_PROPERTY_OF,
  SubDataPropertyOf: SUB_PROPERTY_OF,
  SubAnnotationPropertyOf: SUB_PROPERTY_OF,
  EquivalentClasses: `${OWL}equivalentClass`,
  DisjointClasses: `${OWL}disjointWith`,
  EquivalentObjectProperties: `${OWL}equivalentProperty`,
  EquivalentDataProperties: `${OWL}equivalentProperty`,
  DisjointObjectProperties: `${OWL}propertyDisjointWith`,
  DisjointDataProperties: `${OWL}propertyDisjointWith`,
  InverseObjectProperties: `${OWL}inverseOf`,
  ObjectPropertyDomain: `${RDFS}domain`,
  ObjectPropertyRange: `${RDFS}range`,
  DataPropertyDomain: `${RDFS}domain`,
  DataPropertyRange: `${RDFS}range`,
  AnnotationPropertyDomain: `${RDFS}domain`,
  AnnotationPropertyRange: `${RDFS}range`,
  DatatypeDefinition: `${OWL}equivalentClass`,
  SameIndividual: `${OWL}sameAs`,
  DifferentIndividuals: `${OWL}differentFrom`,
};
/** Axioms about one property, which give it a type. */
const CHARACTERISTICS: Readonly<Record<string, string>> = {
  FunctionalObjectProperty: `${OWL}FunctionalProperty`,
  FunctionalDataProperty: `${OWL}FunctionalProperty`,
  InverseFunctionalObjectProperty: `${OWL}InverseFunctionalProperty`,
  ReflexiveObjectProperty: `${OWL}ReflexiveProperty`,
  IrreflexiveObjectProperty: `${OWL}IrreflexiveProperty`,
  SymmetricObjectProperty: `${OWL}SymmetricProperty`,
  AsymmetricObjectProperty: `${OWL}AsymmetricProperty`,
  TransitiveObjectProperty: `${OWL}TransitiveProperty`,
};
const ASSERTIONS = new Set(["AnnotationAssertion", "ObjectPropertyAssertion", "DataPropertyAssertion"]);

/** Emits the statements of one axiom. */
export function emitAxiom(
  name: string,
  operands: readonly Operand[],
  onStatement: OnStatement,
  blanks: BlankNodes,
): void {
  const [first, second, third] = operands;
  if (name === "Declaration") {
    if (first?.kind === "entity") onStatement(first.iri, RDF_TYPE, first.type, "iri", "", "");
    return;
  }
  if (ASSERTIONS.has(name)) {
    const property = iriOf(first);
    const subject = iriOf(second);
    if (property !== undefined && subject !== undefined && third !== undefined) {
      emitValue(subject, property, third, onStatement);
    }
    return;
  }
  const left = iriOf(first);
  const characteristic = CHARACTERISTICS[name];
  if (left !== undefined && characteristic !== undefined) onStatement(left, RDF_TYPE, characteristic, "iri", "", "");
  if (left === undefined || second === undefined) return;
  if (name === "ClassAssertion") {
    const individual = iriOf(second);
    if (individual !== undefined) onStatement(individual, RDF_TYPE, left, "iri", "", "");
    return;
  }
  const predicate = BINARY[name];
  if (predicate === undefined || operands.length > 2) return;
  if (second.kind === "some" && name === "SubClassOf") {
    emitRestriction(left, second.property, second.filler, onStatement, blanks.next());
  } else emitValue(left, predicate, second, onStatement);
}

/** `subject` is a subclass of the things that have `property` to some `filler`. */
export function emitRestriction(
  subject: string,
  property: string,
  filler: string,
  onStatement: OnStatement,
  blank: string,
): void {
  onStatement(subject, SUB_CLASS_OF, blank, "blank", "", "");
  onStatement(blank, RDF_TYPE, `${OWL}Restriction`, "iri", "", "");
  onStatement(blank, `${OWL}onProperty`, property, "iri", "", "");
  onStatement(blank, `${OWL}someValuesFrom`, filler, nodeKind(filler), "", "");
}

/**
 * A literal of functional or Manchester syntax, which may write `"text@language"^^rdf:PlainLiteral`. In RDF such a
 * literal has no datatype.
 */
export function literalOf(text: string, language: string, datatype: string): Operand & { readonly kind: "literal" } {
  if (datatype !== PLAIN_LITERAL) return { kind: "literal", text, language, datatype };
  const at = text.lastIndexOf("@");
  const tag = at < 0 ? "" : text.slice(at + 1);
  const isTagged = at >= 0 && (tag === "" || languageTag(tag) !== "");
  return { kind: "literal", text: isTagged ? text.slice(0, at) : text, language: isTagged ? tag : "", datatype: "" };
}

/** A statement whose object is an operand. Operands without a name or a value give no statement. */
export function emitValue(subject: string, predicate: string, value: Operand, onStatement: OnStatement): void {
  if (value.kind === "literal") {
    onStatement(subject, predicate, value.text, "literal", value.language, value.datatype);
    return;
  }
  const iri = iriOf(value);
  if (iri !== undefined) onStatement(subject, predicate, iri, nodeKind(iri), "", "");
}

export function iriOf(operand: Operand | undefined): string | undefined {
  return operand?.kind === "iri" || operand?.kind === "entity" ? operand.iri : undefined;
}

function one(name: string): readonly [string, number] {
  return [name, 1];
}

function two(name: string): readonly [string, number] {
  return [name, 2];
}

function three(name: string): readonly [string, number] {
  return [name, 3];
}
