/**
 * Contexts of JSON-LD 1.1 (https://www.w3.org/TR/json-ld11-api/#context-processing-algorithm): which IRI a term stands
 * for, and how its values are read.
 */
import { blankNodeOf } from "./blank-nodes.ts";
import { IriBase, isAbsoluteIri } from "./iri-base.ts";
import { isObject, type JsonObject, listOf, memberOf, textOf } from "./json-values.ts";
import { checkBase, checkNamespace } from "./limits.ts";
import { pinnedContext } from "./pinned-contexts.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/** How one term is read. */
export interface TermDefinition {
  /** An IRI or a keyword; undefined if the term is excluded. */
  readonly iri: string | undefined;
  readonly type: string | undefined;
  /** Undefined: the language of the context. Empty: none. */
  readonly language: string | undefined;
  readonly containers: ReadonlySet<string>;
  readonly isReverse: boolean;
  readonly isPrefix: boolean;
  /** A context for the values of the term, or for nodes of this type. */
  readonly context: unknown;
}

const KEYWORDS = new Set([
  ...["@base", "@container", "@context", "@direction", "@graph", "@id", "@import", "@included", "@index", "@json"],
  ...["@language", "@list", "@nest", "@none", "@prefix", "@propagate", "@protected", "@reverse", "@set", "@type"],
  ...["@value", "@version", "@vocab", "@annotation"],
]);
const NO_CONTAINERS: ReadonlySet<string> = new Set();
/** How many contexts may import each other or be nested. */
const CONTEXTS_MAX = 32;
/** How many terms may follow each other where each is defined by the next one. */
const DEPTH_MAX = 32;
/**
 * How many terms may be defined by contexts that are read again. A context for the values of a term is read again in each
 * context where the term is used, so a small file can reach this number.
 */
const REPEATED_DEFINITIONS_MAX = 1_000_000;

export function isKeyword(text: string): boolean {
  return KEYWORDS.has(text);
}

/** An active context of the algorithm. Its terms do not change after it was built. */
export class JsonLdContext {
  readonly base: IriBase;
  readonly vocab: string | undefined;
  readonly language: string;
  readonly #terms: ReadonlyMap<string, TermDefinition>;
  readonly #inherited: JsonLdContext | undefined;
  /** How many contexts a look-up may visit: this one and those that it inherits from. */
  readonly chainLength: number;
  /** The contexts of the file that were read, and how many terms those had that were read again. */
  readonly read: { readonly entries: WeakSet<object>; repeatedDefinitions: number };
  /** The contexts that were built from this one, by the object that changes it: a large object is processed once. */
  readonly derived = new WeakMap<object, JsonLdContext>();

  constructor(
    base: IriBase,
    vocab: string | undefined,
    language: string,
    terms: ReadonlyMap<string, TermDefinition>,
    inherited: JsonLdContext | undefined,
  ) {
    this.base = base;
    this.vocab = vocab;
    this.language = language;
    this.#terms = terms;
    this.#inherited = inherited;
    this.chainLength = 1 + (inherited?.chainLength ?? 0);
    this.read = inherited?.read ?? { entries: new WeakSet(), repeatedDefinitions: 0 };
  }

  term(name: string): TermDefinition | undefined {
    return this.#terms.get(name) ?? this.#inherited?.term(name);
  }

  /** The IRI or keyword that a key or a type stands for; undefined if none. */
  vocabIri(value: string): string | undefined {
    return expand(value, this, name => this.term(name), true);
  }

  /** The IRI or blank node of a value of `@id`, relative to the document. */
  documentIri(value: string): string {
    if (value.startsWith("_:")) return blankNodeOf(value.slice(2));
    return this.base.resolve(expand(value, this, name => this.term(name), false) ?? value);
  }
}

/**
 * Applies the value of an `@context` to the active context.
 * @param initial the context that `null` in `local` returns to
 * @param imports how many contexts have led to this one by their IRIs
 * @throws SyntaxProblem for an invalid or unavailable context.
 */
export function contextOf(active: JsonLdContext, local: unknown, initial: JsonLdContext, imports = 0): JsonLdContext {
  if (imports > CONTEXTS_MAX) throw new SyntaxProblem(`more than ${CONTEXTS_MAX} contexts import each other`);
  let context = active;
  for (const entry of Array.isArray(local) ? local : [local]) {
    if (entry === null) context = initial;
    else if (typeof entry === "string") {
      context = contextOf(context, pinnedContext(context.base.resolve(entry)), initial, imports + 1);
    } else if (isObject(entry)) {
      const built = context.derived.get(entry) ?? build(context, entry);
      context.derived.set(entry, built);
      context = built;
    } else throw new SyntaxProblem("@context is not an object, a list or an IRI");
  }
  if (context.chainLength > CONTEXTS_MAX) throw new SyntaxProblem(`more than ${CONTEXTS_MAX} nested contexts`);
  return context;
}

function build(active: JsonLdContext, entry: JsonObject): JsonLdContext {
  const { read } = active;
  const local = imported(entry);
  // What is read once is limited by the size of the file.
  if (read.entries.has(entry)) read.repeatedDefinitions += Object.keys(local).length;
  read.entries.add(entry);
  if (read.repeatedDefinitions > REPEATED_DEFINITIONS_MAX)
    throw new SyntaxProblem(`contexts that are read again define terms more than ${REPEATED_DEFINITIONS_MAX} times`);
  return new ContextBuilder(active, local).build();
}

function imported(entry: JsonObject): JsonObject {
  const source = textOf(memberOf(entry, "@import"), "@import");
  if (source === undefined) return entry;
  const other = pinnedContext(source);
  return isObject(other) ? { ...other, ...entry } : entry;
}

class ContextBuilder {
  readonly #active: JsonLdContext;
  readonly #local: JsonObject;
  readonly #terms = new Map<string, TermDefinition>();
  readonly #started = new Set<string>();
  readonly #result: JsonLdContext;

  constructor(active: JsonLdContext, local: JsonObject) {
    this.#active = active;
    this.#local = local;
    const given = textOf(memberOf(local, "@base"), "@base");
    const base = given === undefined ? undefined : active.base.resolve(given);
    // The base of the file itself may be a long signed URL.
    if (base !== undefined && base.length > active.base.resolve("").length) checkBase(base);
    const language = memberOf(local, "@language");
    const vocab = memberOf(local, "@vocab");
    const beforeVocab = new JsonLdContext(
      base === undefined ? active.base : new IriBase(base),
      vocab === undefined ? active.vocab : undefined,
      language === undefined ? active.language : (textOf(language, "@language") ?? ""),
      this.#terms,
      active,
    );
    const vocabText = textOf(vocab, "@vocab");
    if (vocabText === undefined) this.#result = beforeVocab;
    else {
      const full = vocabText === "" ? beforeVocab.base.resolve("") : (this.#expand(vocabText, true) ?? vocabText);
      checkNamespace(full);
      this.#result = new JsonLdContext(beforeVocab.base, full, beforeVocab.language, this.#terms, active);
    }
  }

  build(): JsonLdContext {
    for (const name of Object.keys(this.#local)) if (!isKeyword(name)) this.#define(name, 0);
    return this.#result;
  }

  #define(name: string, depth: number): TermDefinition | undefined {
    const known = this.#terms.get(name);
    if (known !== undefined || !Object.hasOwn(this.#local, name)) return known ?? this.#active.term(name);
    if (this.#started.has(name)) throw new SyntaxProblem(`${termText(name)} is defined by itself`);
    if (depth > DEPTH_MAX)
      throw new SyntaxProblem(`a chain of more than ${DEPTH_MAX} terms leads to ${termText(name)}`);
    this.#started.add(name);
    const definition = this.#read(name, this.#local[name], depth);
    this.#terms.set(name, definition);
    return definition;
  }

  #read(name: string, value: unknown, depth: number): TermDefinition {
    const isSimple = typeof value === "string" || value === null;
    const entry: JsonObject = isSimple ? { "@id": value } : isObject(value) ? value : {};
    if (!isSimple && !isObject(value)) throw new SyntaxProblem(`${termText(name)} is not an object`);
    const reverse = textOf(memberOf(entry, "@reverse"), "@reverse");
    const id = reverse ?? (Object.hasOwn(entry, "@id") ? entry["@id"] : name);
    const type = textOf(memberOf(entry, "@type"), "@type");
    const language = memberOf(entry, "@language");
    const text = textOf(id, "@id");
    const iri = text === undefined ? undefined : this.#expand(text, true, depth, name);
    if (iri !== undefined) checkNamespace(iri);
    return {
      iri,
      type: type === undefined ? undefined : (this.#expand(type, true, depth, name) ?? type),
      language: language === undefined ? undefined : (textOf(language, "@language") ?? ""),
      containers: Object.hasOwn(entry, "@container") ? new Set(listOf(entry["@container"]).map(String)) : NO_CONTAINERS,
      isReverse: reverse !== undefined,
      isPrefix: memberOf(entry, "@prefix") === true || (isSimple && /[:/?#[\]@]$/.test(iri ?? "")),
      context: memberOf(entry, "@context"),
    };
  }

  /**
   * @param depth how many definitions are being read
   * @param defined the term whose definition is being read: it is not looked up in it
   */
  #expand(value: string, usesVocab: boolean, depth = 0, defined?: string): string | undefined {
    // The constructor expands `@vocab` before there is a result.
    const context = this.#result ?? this.#active;
    const termOf = (name: string) => (name === defined ? undefined : this.#define(name, depth + 1));
    return expand(value, context, termOf, usesVocab);
  }
}

/** A term in a message. */
function termText(name: string): string {
  return `term ${JSON.stringify(name.slice(0, 80))}`;
}

/**
 * IRI expansion. Undefined if the value stands for no IRI.
 * @param usesVocab whether the value is a key or a type, for which terms and `@vocab` apply
 */
function expand(
  value: string,
  context: JsonLdContext,
  termOf: (name: string) => TermDefinition | undefined,
  usesVocab: boolean,
): string | undefined {
  if (isKeyword(value)) return value;
  if (usesVocab) {
    const term = termOf(value);
    if (term !== undefined) return term.iri;
  }
  const colon = value.indexOf(":", 1);
  if (colon > 0) {
    const prefix = value.slice(0, colon);
    if (prefix === "_" || value.startsWith("//", colon + 1)) return value;
    const term = termOf(prefix);
    if (term?.iri !== undefined && (term.isPrefix || !usesVocab)) return term.iri + value.slice(colon + 1);
    if (isAbsoluteIri(value)) return value;
  }
  if (usesVocab) return context.vocab === undefined || isReserved(value) ? undefined : context.vocab + value;
  return value;
}

/** Whether a later version of JSON-LD may use the text as a keyword. */
function isReserved(text: string): boolean {
  return /^@[A-Za-z]+$/.test(text);
}
