/** The type of the object of a statement. A `triple` is an RDF 1.2 triple term, written as in N-Triples. */
export type ObjectKind = "iri" | "blank" | "literal" | "triple";

/**
 * Receives one statement (RDF triple). IRIs are plain text, blank nodes begin with `_:`. `language` and `datatype` are
 * empty unless the object is a literal that has them. Positional, because it is called once for each statement of a
 * large file.
 */
export type OnStatement = (
  subject: string,
  predicate: string,
  object: string,
  kind: ObjectKind,
  language: string,
  datatype: string,
) => void;
