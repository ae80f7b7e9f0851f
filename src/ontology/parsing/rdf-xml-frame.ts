import type { IriBase } from "./iri-base.ts";

/**
 * - `document`: expects the root. `rdf`: inside `rdf:RDF`. Both contain node elements.
 * - `node`: a node element, or a property with `parseType="Resource"`. It contains property elements.
 * - `property`: a property element that contains text or one node element. `empty`: one that contains neither.
 * - `collection`, `literal`, `triple`: property elements with that `parseType`.
 */
export type FrameKind = "document" | "rdf" | "node" | "property" | "empty" | "collection" | "literal" | "triple";

/** What an element passes on to the elements inside it. */
export interface FrameContext {
  readonly base: IriBase;
  readonly language: string;
  readonly direction: string;
  readonly version: string;
}

/** An open element of RDF/XML. A class, because a file has millions of elements, and copying objects is slow. */
export class RdfXmlFrame implements FrameContext {
  kind: FrameKind;
  base: IriBase;
  language: string;
  direction: string;
  version: string;
  /** The subject of the statements of this element. */
  subject = "";
  predicate = "";
  text = "";
  datatype = "";
  hasChild = false;
  /** The number of the next `rdf:li`. */
  nextItem = 1;
  /** The IRI of the reified statement (`rdf:ID`), and its reifier (`rdf:annotation`). */
  statementId = "";
  reifier = "";
  /** The blank node of the last list cell of a collection; empty if it has none. */
  lastCell = "";

  constructor(kind: FrameKind, { base, language, direction, version }: FrameContext) {
    this.kind = kind;
    this.base = base;
    this.language = language;
    this.direction = direction;
    this.version = version;
  }
}
