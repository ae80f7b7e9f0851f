/** JSON-LD 1.1: nodes are expanded one by one into statements. */

import { BlankNodes, nodeOf } from "./blank-nodes.ts";
import { IriBase } from "./iri-base.ts";
import { contextOf, isKeyword, JsonLdContext, type TermDefinition } from "./json-ld-context.ts";
import { isObject, type JsonObject, listOf, memberOf, textOf } from "./json-values.ts";
import { UnknownContext } from "./pinned-contexts.ts";
import { RDF, RDF_TYPE, XSD } from "./rdf-vocabulary.ts";
import { nodeKind, type OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/** Nodes that come before the context must wait for it. */
const WAITING_MAX = 1_000_000;
const XSD_DOUBLE = `${XSD}double`;
/** From here on JSON writes an integer with an exponent. */
const INTEGER_MAX = 1e21;

export class JsonLdParser {
  readonly #onStatement: OnStatement;
  readonly #initial: JsonLdContext;
  #context: JsonLdContext;
  #hasContext = false;
  /** Nodes of `@graph` that came before `@context`. */
  #waiting: unknown[] = [];
  /** The members of the root object, without `@context` and `@graph`. */
  readonly #root: Record<string, unknown> = Object.create(null);
  readonly #blanks = new BlankNodes();
  /** Set when a context is not known: then only the syntax of the JSON is checked. */
  note: string | undefined;

  constructor(onStatement: OnStatement, base: string) {
    this.#onStatement = onStatement;
    this.#initial = new JsonLdContext(new IriBase(base), undefined, "", new Map(), undefined);
    this.#context = this.#initial;
  }

  /** One node of `@graph`, or of a list at the root. The nodes of a root list share no context, so they need not wait. */
  node(value: unknown, isInRootList: boolean): void {
    this.#attempt(() => {
      if (isInRootList || this.#hasContext) this.#emitNodes(value, this.#context);
      else if (this.#waiting.length < WAITING_MAX) this.#waiting.push(value);
      else throw new SyntaxProblem(`"@graph" has more than ${WAITING_MAX} nodes before "@context"`);
    });
  }

  /** One member of the root object. */
  member(key: string, value: unknown): void {
    if (key !== "@context") this.#root[key] = value;
    else {
      this.#attempt(() => {
        this.#context = contextOf(this.#context, value, this.#initial);
        this.#hasContext = true;
        this.#emitWaiting();
      });
    }
  }

  end(): void {
    this.#attempt(() => {
      this.#emitWaiting();
      if (Object.keys(this.#root).length > 0) this.#emitNode(this.#root, this.#context);
    });
  }

  #emitWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const node of waiting) this.#emitNodes(node, this.#context);
  }

  /** Sets `note` if a context is not known. Then no further node is expanded. */
  #attempt(work: () => void): void {
    if (this.note !== undefined) return;
    try {
      work();
    } catch (error) {
      if (!(error instanceof UnknownContext)) throw error;
      this.note = `not expanded: ${error.message}`;
    }
  }

  #emitNodes(value: unknown, context: JsonLdContext): void {
    for (const node of listOf(value)) {
      if (Array.isArray(node)) this.#emitNodes(node, context);
      else if (isObject(node)) this.#emitNode(node, context);
      else if (typeof node !== "string") throw new SyntaxProblem("a node is not an object");
    }
  }

  /** Emits a node object and returns its IRI or blank node. */
  #emitNode(node: JsonObject, outer: JsonLdContext): string {
    const own = Object.hasOwn(node, "@context") ? contextOf(outer, node["@context"], this.#initial) : outer;
    const entries = Object.entries(node).map(([key, value]) => [key, own.vocabIri(key), value] as const);
    const types = entries.filter(([, iri]) => iri === "@type").flatMap(([, , value]) => listOf(value));
    const context = withTypeContexts(own, types, this.#initial);
    let id: string | undefined;
    for (const [, iri, value] of entries) {
      if (iri === "@id") id = context.documentIri(textOf(value, "@id") ?? "");
    }
    const subject = id ?? this.#blanks.next();
    for (const type of types) {
      const name = textOf(type, "@type") ?? "";
      const iri = own.vocabIri(name) ?? name;
      if (iri.includes(":")) this.#emitObject(subject, RDF_TYPE, nodeOf(iri));
    }
    for (const [key, value] of Object.entries(node)) this.#emitMember(subject, key, value, context, own);
    return subject;
  }

  #emitMember(subject: string, key: string, value: unknown, context: JsonLdContext, own: JsonLdContext): void {
    const iri = context.vocabIri(key);
    if (iri === undefined || value === null) return;
    if (iri === "@graph" || iri === "@included") this.#emitNodes(value, own);
    else if (iri === "@reverse") {
      for (const [name, nodes] of Object.entries(isObject(value) ? value : {})) {
        const predicate = context.vocabIri(name);
        if (predicate !== undefined && isProperty(predicate)) this.#emitReverse(subject, predicate, nodes, context);
      }
    } else if (iri === "@nest") {
      for (const nest of listOf(value)) {
        if (!isObject(nest)) throw new SyntaxProblem("@nest is not an object");
        for (const [name, inner] of Object.entries(nest)) this.#emitMember(subject, name, inner, context, own);
      }
    }
    if (!isProperty(iri)) return;
    const term = context.term(key);
    const inner = term?.context === undefined ? own : contextOf(own, term.context, this.#initial);
    if (term?.isReverse) this.#emitReverse(subject, iri, value, inner);
    else if (term?.type === "@json") this.#emitJson(subject, iri, value);
    else if (term?.containers.has("@list") && !isListObject(value)) {
      this.#emitObject(subject, iri, this.#emitList(listOf(value), term, inner));
    } else for (const item of itemsOf(value, term)) this.#emitValue(subject, iri, item, term, inner);
  }

  #emitReverse(object: string, predicate: string, nodes: unknown, context: JsonLdContext): void {
    for (const node of listOf(nodes)) {
      const subject = isObject(node) ? this.#emitNode(node, context) : context.documentIri(String(node));
      this.#emitObject(subject, predicate, object);
    }
  }

  #emitValue(
    subject: string,
    predicate: string,
    value: unknown,
    term: TermDefinition | undefined,
    context: JsonLdContext,
  ): void {
    if (value === null || value === undefined) return;
    if (Array.isArray(value)) {
      for (const item of value) this.#emitValue(subject, predicate, item, term, context);
    } else if (isObject(value)) this.#emitObjectValue(subject, predicate, value, term, context);
    else if (typeof value === "string" && (term?.type === "@id" || term?.type === "@vocab")) {
      const iri = term.type === "@vocab" ? context.vocabIri(value) : undefined;
      this.#emitObject(subject, predicate, iri === undefined ? context.documentIri(value) : nodeOf(iri));
    } else {
      const type = term?.type === undefined || term.type.startsWith("@") ? "" : term.type;
      const language = type === "" && typeof value === "string" ? (term?.language ?? context.language) : "";
      this.#emitLiteral(subject, predicate, value, language, type);
    }
  }

  #emitObjectValue(
    subject: string,
    predicate: string,
    value: JsonObject,
    term: TermDefinition | undefined,
    outer: JsonLdContext,
  ): void {
    const context = Object.hasOwn(value, "@context") ? contextOf(outer, value["@context"], this.#initial) : outer;
    const member = (keyword: string) => {
      if (Object.hasOwn(value, keyword)) return value[keyword];
      const alias = Object.keys(value).find(key => context.vocabIri(key) === keyword);
      return alias === undefined ? undefined : value[alias];
    };
    const literal = member("@value");
    const list = member("@list");
    const set = member("@set");
    if (literal !== undefined) {
      const type = textOf(member("@type"), "@type");
      const language = textOf(member("@language"), "@language") ?? "";
      if (type !== undefined && language !== "") throw new SyntaxProblem("a value has @type and @language");
      if (isObject(literal) && type !== "@json") throw new SyntaxProblem("@value is an object");
      if (literal === null) return;
      if (type === "@json") this.#emitJson(subject, predicate, literal);
      else {
        const datatype = type === undefined ? "" : (context.vocabIri(type) ?? type);
        this.#emitLiteral(subject, predicate, literal, language, datatype);
      }
    } else if (list !== undefined) this.#emitObject(subject, predicate, this.#emitList(listOf(list), term, context));
    else if (set !== undefined) this.#emitValue(subject, predicate, set, term, context);
    else this.#emitObject(subject, predicate, this.#emitNode(value, outer));
  }

  #emitList(items: readonly unknown[], term: TermDefinition | undefined, context: JsonLdContext): string {
    const nil = `${RDF}nil`;
    let head: string | undefined;
    let last = "";
    for (const item of items) {
      if (item === null) continue;
      const cell = this.#blanks.next();
      if (head === undefined) head = cell;
      else this.#emitObject(last, `${RDF}rest`, cell);
      if (Array.isArray(item)) this.#emitObject(cell, `${RDF}first`, this.#emitList(item, term, context));
      else this.#emitValue(cell, `${RDF}first`, item, term, context);
      last = cell;
    }
    if (head === undefined) return nil;
    this.#emitObject(last, `${RDF}rest`, nil);
    return head;
  }

  #emitLiteral(subject: string, predicate: string, value: unknown, language: string, datatype: string): void {
    if (typeof value === "string") this.#onStatement(subject, predicate, value, "literal", language, datatype);
    else {
      const type = datatype || nativeType(value);
      const isDouble = typeof value === "number" && type === XSD_DOUBLE;
      this.#onStatement(
        subject,
        predicate,
        isDouble ? doubleText(value) : JSON.stringify(value),
        "literal",
        language,
        type,
      );
    }
  }

  #emitJson(subject: string, predicate: string, value: unknown): void {
    this.#onStatement(subject, predicate, JSON.stringify(value), "literal", "", `${RDF}JSON`);
  }

  #emitObject(subject: string, predicate: string, node: string): void {
    this.#onStatement(subject, predicate, node, nodeKind(node), "", "");
  }
}

/** Adds the contexts of the types, sorted by type. They apply to the members of the node, not to nodes inside. */
function withTypeContexts(context: JsonLdContext, types: readonly unknown[], initial: JsonLdContext): JsonLdContext {
  let result = context;
  for (const type of types.filter(type => typeof type === "string").sort()) {
    const scoped = context.term(type)?.context;
    if (scoped !== undefined) result = contextOf(result, scoped, initial);
  }
  return result;
}

/** The values of a member. If its term has a map container, the value is a map, and its values are returned. */
function itemsOf(value: unknown, term: TermDefinition | undefined): readonly unknown[] {
  const containers = term?.containers;
  if (containers === undefined || containers.size === 0 || !isObject(value)) return listOf(value);
  if (containers.has("@language")) {
    return Object.entries(value).flatMap(([language, texts]) =>
      listOf(texts).map(text => ({ "@value": text, ...(language === "@none" ? {} : { "@language": language }) })),
    );
  }
  if (containers.has("@id")) {
    return Object.entries(value).flatMap(([id, nodes]) =>
      listOf(nodes).map(node => (isObject(node) ? { "@id": id, ...node } : node)),
    );
  }
  if (containers.has("@type")) {
    return Object.entries(value).flatMap(([type, nodes]) =>
      listOf(nodes).map(node => (isObject(node) ? { "@type": type, ...node } : { "@id": node, "@type": type })),
    );
  }
  if (containers.has("@graph") && memberOf(value, "@id") === undefined) return Object.values(value).flatMap(listOf);
  return containers.has("@index") ? Object.values(value).flatMap(listOf) : listOf(value);
}

/** A property without an IRI is not part of the graph. */
function isProperty(iri: string): boolean {
  return !isKeyword(iri) && iri.includes(":") && !iri.startsWith("_:");
}

function isListObject(value: unknown): boolean {
  return isObject(value) && Object.hasOwn(value, "@list");
}

/** The datatype of a value that is not a text. A number that has no exact integer is a double. */
function nativeType(value: unknown): string {
  if (typeof value === "boolean") return `${XSD}boolean`;
  return Number.isInteger(value) && Math.abs(Number(value)) < INTEGER_MAX ? `${XSD}integer` : XSD_DOUBLE;
}

/** The canonical form of xsd:double: `5.0E0`. */
function doubleText(value: number): string {
  return value.toExponential(15).replace(/(\d)0*e\+?/, "$1E");
}
