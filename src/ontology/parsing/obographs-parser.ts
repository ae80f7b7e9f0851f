import { BlankNodes, nodeOf } from "./blank-nodes.ts";
import { HashTable } from "./hash-table.ts";
import { isAbsoluteIri } from "./iri-base.ts";
import { isObject, listOf, memberOf, textOf } from "./json-values.ts";
import { emitRestriction } from "./owl-axiom.ts";
import {
  ANNOTATION_PROPERTY,
  DEFINITION,
  NAMED_INDIVIDUAL,
  OBJECT_PROPERTY,
  OBO_IN_OWL,
  OWL,
  OWL_CLASS,
  OWL_DEPRECATED,
  OWL_IMPORTS,
  OWL_ONTOLOGY,
  OWL_VERSION_IRI,
  RDF_TYPE,
  RDFS,
  RDFS_LABEL,
  SUB_CLASS_OF,
  SUB_PROPERTY_OF,
  XSD_BOOLEAN,
} from "./rdf-vocabulary.ts";
import { nodeKind, type OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

// Maps, because the keys come from the file: an object also has the names of its prototype.
const TYPES: ReadonlyMap<string, string> = new Map([
  ["CLASS", OWL_CLASS],
  ["PROPERTY", OBJECT_PROPERTY],
  ["INDIVIDUAL", NAMED_INDIVIDUAL],
]);
/** Newer files say what a PROPERTY is. */
const PROPERTY_TYPES: ReadonlyMap<string, string> = new Map([
  ["ANNOTATION", ANNOTATION_PROPERTY],
  ["DATA", `${OWL}DatatypeProperty`],
  ["OBJECT", OBJECT_PROPERTY],
]);
const PREDICATES: ReadonlyMap<string, string> = new Map([
  ["is_a", SUB_CLASS_OF],
  ["subPropertyOf", SUB_PROPERTY_OF],
  ["type", RDF_TYPE],
  ["inverseOf", `${OWL}inverseOf`],
]);

/** Parses the values of an obographs document (https://github.com/geneontology/obographs), one after the other. */
export class ObographsParser {
  readonly #onStatement: OnStatement;
  /** The id of the current graph; its `meta` is kept until the id is known. */
  #graphId = "";
  #hasGraphId = false;
  #meta: unknown;
  readonly #blanks = new BlankNodes();
  /** Files have their nodes before their edges. */
  readonly #individuals = new HashTable();
  nodes = 0;

  constructor(onStatement: OnStatement) {
    this.#onStatement = onStatement;
  }

  /** See `JsonSplitterHandler.descends`. */
  static descends(path: readonly string[], container: "object" | "list"): boolean {
    const [, , part] = path;
    if (path.length === 1) return container === "list";
    if (path.length === 2) return container === "object";
    return path.length === 3 && container === "list" && (part === "nodes" || part === "edges");
  }

  /** @param path begins with `graphs`. */
  value(path: readonly string[], value: unknown): void {
    const [, , part] = path;
    if (path.length === 1) throw new SyntaxProblem('"graphs" is not a list of graphs');
    if (path.length === 2) throw new SyntaxProblem("a graph is not an object");
    if (path.length === 4 && part === "nodes") this.#node(value);
    else if (path.length === 4 && part === "edges") this.#edge(value);
    else if (part === "id") this.#openGraph(textOf(value, "id of a graph") ?? "");
    else if (part === "meta") {
      this.#meta = value;
      if (this.#hasGraphId) this.#emitMeta();
    } else if (part === "nodes" || part === "edges") throw new SyntaxProblem(`"${part}" is not a list`);
  }

  /** @param path of an object or a list whose values were passed one by one. */
  endContainer(path: readonly string[]): void {
    if (path.length !== 2) return;
    this.#graphId = "";
    this.#hasGraphId = false;
    this.#meta = undefined;
  }

  #openGraph(id: string): void {
    this.#graphId = id;
    this.#hasGraphId = true;
    this.#emitIri(id, RDF_TYPE, OWL_ONTOLOGY);
    this.#emitMeta();
  }

  #emitMeta(): void {
    const meta = this.#meta;
    this.#meta = undefined;
    const version = memberOf(meta, "version");
    if (typeof version === "string" && version !== "") this.#emitIri(this.#graphId, OWL_VERSION_IRI, version);
    for (const entry of listOf(memberOf(meta, "basicPropertyValues"))) {
      const predicate = memberOf(entry, "pred");
      const text = memberOf(entry, "val");
      if (typeof predicate !== "string" || typeof text !== "string") continue;
      if (predicate === OWL_IMPORTS) this.#emitIri(this.#graphId, predicate, text);
      else this.#emitText(this.#graphId, predicate, text);
    }
  }

  #node(node: unknown): void {
    if (!isObject(node)) throw new SyntaxProblem("a node is not an object");
    const id = textOf(memberOf(node, "id"), "id of a node");
    if (id === undefined || id === "") throw new SyntaxProblem("a node has no id");
    this.nodes += 1;
    const type = textOf(memberOf(node, "type"), "type of a node") ?? "CLASS";
    const propertyType = textOf(memberOf(node, "propertyType"), "propertyType of a node") ?? "";
    const iri = (type === "PROPERTY" ? PROPERTY_TYPES.get(propertyType) : undefined) ?? TYPES.get(type) ?? OWL_CLASS;
    this.#emitIri(id, RDF_TYPE, iri);
    if (iri === NAMED_INDIVIDUAL) this.#individuals.add(id, 1);
    const label = textOf(memberOf(node, "lbl"), "lbl of a node");
    if (label !== undefined) this.#emitText(id, RDFS_LABEL, label);
    const meta = memberOf(node, "meta");
    if (memberOf(meta, "deprecated") === true)
      this.#onStatement(nodeOf(id), OWL_DEPRECATED, "true", "literal", "", XSD_BOOLEAN);
    const definition = memberOf(memberOf(meta, "definition"), "val");
    if (typeof definition === "string") this.#emitText(id, DEFINITION, definition);
    for (const comment of listOf(memberOf(meta, "comments")))
      if (typeof comment === "string") this.#emitText(id, `${RDFS}comment`, comment);
    for (const subset of listOf(memberOf(meta, "subsets")))
      if (typeof subset === "string") this.#emitIri(id, `${OBO_IN_OWL}inSubset`, subset);
    for (const xref of listOf(memberOf(meta, "xrefs"))) {
      const text = memberOf(xref, "val");
      if (typeof text === "string") this.#emitText(id, `${OBO_IN_OWL}hasDbXref`, text);
    }
    for (const synonym of listOf(memberOf(meta, "synonyms"))) {
      const predicate = memberOf(synonym, "pred");
      const text = memberOf(synonym, "val");
      if (typeof predicate === "string" && typeof text === "string") this.#emitText(id, OBO_IN_OWL + predicate, text);
    }
    for (const entry of listOf(memberOf(meta, "basicPropertyValues"))) {
      const predicate = memberOf(entry, "pred");
      const text = memberOf(entry, "val");
      if (typeof predicate === "string" && typeof text === "string") this.#emitText(id, predicate, text);
    }
  }

  #edge(edge: unknown): void {
    const [subject, predicate, object] = ["sub", "pred", "obj"].map(key =>
      textOf(memberOf(edge, key), `${key} of an edge`),
    );
    if (!subject || !predicate || !object) throw new SyntaxProblem("an edge has no sub, pred or obj");
    const known = PREDICATES.get(predicate);
    if (known !== undefined) this.#emitIri(subject, known, object);
    // Other short names have no IRI that a statement could name.
    else if (!isAbsoluteIri(predicate)) return;
    else if (this.#individuals.flagsOf(subject) !== 0) this.#emitIri(subject, predicate, object);
    else emitRestriction(nodeOf(subject), predicate, nodeOf(object), this.#onStatement, this.#blanks.next());
  }

  #emitIri(subject: string, predicate: string, iri: string): void {
    const object = nodeOf(iri);
    this.#onStatement(nodeOf(subject), predicate, object, nodeKind(object), "", "");
  }

  #emitText(subject: string, predicate: string, text: string): void {
    this.#onStatement(nodeOf(subject), predicate, text, "literal", "", "");
  }
}
