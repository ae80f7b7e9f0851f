/** The type of the object of a statement. A `triple` is an RDF 1.2 triple term, written as in N-Triples. */
export type ObjectKind = "iri" | "blank" | "literal" | "triple";

/** The kind of a subject, or of an object that is not a literal. */
export function nodeKind(node: string): "iri" | "blank" {
  return node.startsWith("_:") ? "blank" : "iri";
}

/**
 * Receives one statement (RDF triple). IRIs are plain text, blank nodes begin with `_:`. `language` and `datatype` are
 * empty unless the object is a literal that has them. The parameters are positional, because a large file has millions
 * of statements, and an object for each would be slow.
 */
export type OnStatement = (
  subject: string,
  predicate: string,
  object: string,
  kind: ObjectKind,
  language: string,
  datatype: string,
) => void;
