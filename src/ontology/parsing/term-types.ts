/** Which subjects are terms of an ontology, and of which type. The facts, `diff` and `export` agree on them. */
import {
  ANNOTATION_PROPERTY,
  NAMED_INDIVIDUAL,
  OBJECT_PROPERTY,
  OWL,
  OWL_CLASS,
  RDF,
  RDFS,
  SKOS,
} from "./rdf-vocabulary.ts";

export type TermType = "class" | "property" | "individual" | "concept";

const DEPRECATED_CLASS = `${OWL}DeprecatedClass`;
const DEPRECATED_PROPERTY = `${OWL}DeprecatedProperty`;
const TYPES: ReadonlyMap<string, TermType> = new Map([
  ...[OWL_CLASS, `${RDFS}Class`, DEPRECATED_CLASS].map(type => [type, "class"] as const),
  ...[OBJECT_PROPERTY, ANNOTATION_PROPERTY, `${OWL}DatatypeProperty`, `${RDF}Property`, DEPRECATED_PROPERTY].map(
    type => [type, "property"] as const,
  ),
  ...["Functional", "InverseFunctional", "Transitive", "Symmetric", "Asymmetric", "Reflexive", "Irreflexive"].map(
    kind => [`${OWL}${kind}Property`, "property"] as const,
  ),
  [NAMED_INDIVIDUAL, "individual"],
  [`${SKOS}Concept`, "concept"],
]);
const VOCABULARIES = [OWL, RDF, RDFS, SKOS, "http://www.w3.org/2003/11/swrl#"];

/** What `rdf:type` with this object makes of its subject; undefined if no term. Things of other types are individuals. */
export function termTypeOf(type: string): TermType | undefined {
  const known = TYPES.get(type);
  if (known !== undefined) return known;
  return VOCABULARIES.some(vocabulary => type.startsWith(vocabulary)) ? undefined : "individual";
}

export function isDeprecatedType(type: string): boolean {
  return type === DEPRECATED_CLASS || type === DEPRECATED_PROPERTY;
}

/** Whether a subject can be a term: it is neither a blank node nor a statement. */
export function isTermName(subject: string): boolean {
  return !subject.startsWith("_:") && !subject.startsWith("<<(");
}
