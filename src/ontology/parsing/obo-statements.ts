import { BlankNodes, nodeOf, ONTOLOGY_NODE } from "./blank-nodes.ts";
import { checkNamespace } from "./limits.ts";
import { DEFINING_TAGS, HEADER_TEXT_TAGS, NAME_TAGS, TEXT_TAGS, TYPE_TAGS, TYPEDEF_NAME_TAGS } from "./obo-tags.ts";
import { firstWord, plainValue, qualifierNames, quotedText, splitValue, unescaped, wordsOf } from "./obo-value.ts";
import { emitRestriction } from "./owl-axiom.ts";
import {
  DEFINITION,
  NAMED_INDIVIDUAL,
  OBJECT_PROPERTY,
  OBO,
  OBO_IN_OWL,
  OWL,
  OWL_CLASS,
  OWL_DEPRECATED,
  OWL_IMPORTS,
  OWL_ONTOLOGY,
  RDF,
  RDF_TYPE,
  RDFS,
  SKOS,
  SUB_CLASS_OF,
  SUB_PROPERTY_OF,
  XSD,
  XSD_BOOLEAN,
} from "./rdf-vocabulary.ts";
import { nodeKind, type OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

const DCTERMS = "http://purl.org/dc/terms/";
const TYPES: Readonly<Record<string, string>> = {
  Term: OWL_CLASS,
  Typedef: OBJECT_PROPERTY,
  Instance: NAMED_INDIVIDUAL,
};
/** Prefixes that files use without declaring them with `idspace`. */
const KNOWN_PREFIXES: readonly (readonly [string, string])[] = [
  ["dc", "http://purl.org/dc/elements/1.1/"],
  ["dcterms", DCTERMS],
  ["terms", DCTERMS],
  ["owl", OWL],
  ["rdf", RDF],
  ["rdfs", RDFS],
  ["xsd", XSD],
  ["skos", SKOS],
  ["oboInOwl", OBO_IN_OWL],
];
const QUOTED_TAGS = new Set(["def", "synonym", "exact_synonym", "broad_synonym", "narrow_synonym", "related_synonym"]);
const HEADER_CLAUSES_MAX = 10_000;
/** A file has some hundred relations. */
const SHORTHANDS_MAX = 100_000;
/**
 * With one of these qualifiers, `is_a` and `relationship` mean a larger class expression: the clause holds only for a
 * part of the class, or has a number of things, or says that all things are of a class. It gives no statement.
 */
const EXPRESSION_QUALIFIERS = new Set([
  ...["gci_relation", "gci_filler", "cardinality", "minCardinality", "maxCardinality", "all_only"],
]);

/** The statements of OBO clauses: names, definitions, synonyms, hierarchy, relationships, obsolescence and the header. */
export class OboStatements {
  readonly #onStatement: OnStatement;
  readonly #prefixes = new Map(KNOWN_PREFIXES);
  /** The clauses of the header, kept until its end: one of them names the ontology. Undefined after the header. */
  #header: (readonly [tag: string, value: string])[] | undefined = [];
  #ontology = "";
  #stanza = "";
  readonly #blanks = new BlankNodes();
  readonly #shorthands: ReadonlyMap<string, string>;
  /** The shorthands that were found: in the end those of the file. */
  readonly foundShorthands = new Map<string, string>();

  /** @param shorthands of the file, if it was read before: a relation is defined after the terms that it relates */
  constructor(onStatement: OnStatement, shorthands: ReadonlyMap<string, string> = new Map()) {
    this.#onStatement = onStatement;
    this.#shorthands = shorthands;
  }

  /** @param value of the tag `id`. Returns the id without its comment; empty if there is none. */
  openStanza(stanza: string, value: string): string {
    this.#endHeader();
    const id = plainValue(value);
    this.#stanza = stanza;
    if (id !== "") this.#emitIri(this.#iri(id), RDF_TYPE, TYPES[stanza] ?? OWL_CLASS);
    return id;
  }

  /** @param id the id of the stanza; undefined in the header. */
  clause(id: string | undefined, tag: string, value: string): void {
    if (id === undefined) {
      // The tags after the limit are not ignored, because one of them may be an import or an idspace.
      if (this.#header?.length === HEADER_CLAUSES_MAX)
        throw new SyntaxProblem(`header with more than ${HEADER_CLAUSES_MAX} tags`);
      this.#header?.push([tag, value]);
      return;
    }
    const subject = this.#iri(id);
    if (QUOTED_TAGS.has(tag)) {
      this.#quotedClause(subject, tag, value);
      return;
    }
    const { text, qualifiers } = splitValue(value);
    const isTypedef = this.#stanza === "Typedef";
    const textProperty = TEXT_TAGS.get(tag);
    const nameProperty = (isTypedef ? TYPEDEF_NAME_TAGS : NAME_TAGS).get(tag);
    const type = TYPE_TAGS.get(tag);
    if (textProperty !== undefined) this.#emitText(subject, textProperty, unescaped(text));
    else if (nameProperty !== undefined) this.#emitName(subject, nameProperty, text);
    else if (type !== undefined) {
      if (isTrue(tag, text)) this.#emitIri(subject, RDF_TYPE, type);
    } else if (tag === "is_a") {
      this.#require(tag, text);
      if (!isExpression(qualifiers)) this.#emitName(subject, isTypedef ? SUB_PROPERTY_OF : SUB_CLASS_OF, text);
    } else if (tag === "is_obsolete") {
      if (isTrue(tag, text)) this.#onStatement(subject, OWL_DEPRECATED, "true", "literal", "", XSD_BOOLEAN);
    } else if (tag === "relationship") this.#relationship(subject, text, qualifiers);
    else if (tag === "xref") {
      const xref = unescaped(firstWord(text));
      if (isTypedef) this.#findShorthand(unescaped(id), xref);
      this.#emitText(subject, `${OBO_IN_OWL}hasDbXref`, xref);
    } else if (tag === "alt_id") this.#emitText(subject, `${OBO_IN_OWL}hasAlternativeId`, unescaped(firstWord(text)));
    else if (tag === "property_value") this.#propertyValue(subject, text);
  }

  end(): void {
    this.#endHeader();
  }

  #endHeader(): void {
    const header = this.#header;
    if (header === undefined) return;
    this.#header = undefined;
    for (const [tag, value] of header) {
      if (tag === "ontology") {
        this.#ontology = plainValue(value);
        checkNamespace(this.#ontology);
      }
      const [prefix, iri] = tag === "idspace" ? wordsOf(value) : [];
      if (prefix !== undefined && iri !== undefined) {
        checkNamespace(iri);
        this.#prefixes.set(prefix, iri);
      }
    }
    const subject = this.#ontologyIri();
    this.#emitIri(subject, RDF_TYPE, OWL_ONTOLOGY);
    for (const [tag, value] of header) {
      const text = plainValue(value);
      if (text === "") continue;
      const textProperty = HEADER_TEXT_TAGS.get(tag);
      if (textProperty !== undefined) this.#emitText(subject, textProperty, unescaped(text));
      else if (DEFINING_TAGS.has(tag)) this.#definition(tag, text);
      else if (tag === "import") this.#emitIri(subject, OWL_IMPORTS, this.#importIri(text));
      else if (tag === "date") this.#emitText(subject, `${DCTERMS}date`, isoDate(text));
      else if (tag === "property_value") this.#propertyValue(subject, text);
    }
  }

  #quotedClause(subject: string, tag: string, value: string): void {
    const { text, rest } = quotedText(tag, value);
    const after = plainValue(rest);
    if (after.includes("[") !== after.includes("]")) throw new SyntaxProblem(`${tag} with an unclosed bracket`);
    if (tag === "def") this.#emitText(subject, DEFINITION, text);
    else {
      const [scope = ""] = tag === "synonym" ? wordsOf(after) : [tag.slice(0, tag.indexOf("_"))];
      const name = /^(?:exact|broad|narrow|related)$/i.test(scope) ? scope : "related";
      const capital = name.charAt(0).toUpperCase() + name.slice(1).toLowerCase();
      this.#emitText(subject, `${OBO_IN_OWL}has${capital}Synonym`, text);
    }
  }

  /** The first cross reference of a relation without a prefix is its id, unless there is one to RO or BFO. */
  #findShorthand(id: string, xref: string): void {
    if (id.includes(":") || !xref.includes(":")) return;
    const isPreferred = /^(?:RO|BFO):/.test(xref);
    if (this.foundShorthands.has(id) && !isPreferred) return;
    checkNamespace(xref);
    this.foundShorthands.set(id, xref);
    if (this.foundShorthands.size > SHORTHANDS_MAX)
      throw new SyntaxProblem(`more than ${SHORTHANDS_MAX} relations without a prefix`);
  }

  /** Of a class: each of its instances has the relation to some instance of the target. Of others: a plain statement. */
  #relationship(subject: string, text: string, qualifiers: string): void {
    const [relation, target] = wordsOf(text);
    if (relation === undefined || target === undefined) throw new SyntaxProblem("relationship without a target");
    if (isExpression(qualifiers)) return;
    const [predicate, object] = [this.#iri(relation), this.#iri(target)];
    if (this.#stanza === "Term") emitRestriction(subject, predicate, object, this.#onStatement, this.#blanks.next());
    else this.#emitIri(subject, predicate, object);
  }

  #propertyValue(subject: string, text: string): void {
    const [property, value, type = ""] = wordsOf(text);
    if (property === undefined || value === undefined) throw new SyntaxProblem("property_value without a value");
    const predicate = this.#iri(property);
    const isQuoted = value.startsWith('"');
    if (!isQuoted && type === "") {
      this.#emitIri(subject, predicate, this.#iri(value));
      return;
    }
    const literal = isQuoted ? quotedText("property_value", value).text : unescaped(value);
    const datatype = type.startsWith("xsd:") && type !== "xsd:string" ? XSD + type.slice(4) : "";
    this.#onStatement(subject, predicate, literal, "literal", "", datatype);
  }

  /** `subsetdef: slim "text"`. */
  #definition(tag: string, value: string): void {
    const [name, text] = wordsOf(value);
    const properties = DEFINING_TAGS.get(tag);
    if (name === undefined || properties === undefined) return;
    const subject = this.#iri(name);
    this.#emitIri(subject, SUB_PROPERTY_OF, properties.above);
    if (text?.startsWith('"')) this.#emitText(subject, properties.text, quotedText(tag, text).text);
  }

  #require(tag: string, text: string): void {
    if (text === "") throw new SyntaxProblem(`empty ${tag}`);
  }

  #ontologyIri(): string {
    if (this.#ontology === "") return ONTOLOGY_NODE;
    return isUrl(this.#ontology) ? this.#ontology : `${OBO}${this.#ontology}.owl`;
  }

  #importIri(text: string): string {
    return isUrl(text) ? text : `${OBO}${text.endsWith(".owl") ? text : `${text}.owl`}`;
  }

  /**
   * `HP:1` is `obo/HP_1`, `TEMP:part_of` is `obo/TEMP#_part_of`. A name without a prefix is a shorthand, or belongs to the
   * ontology.
   */
  #iri(id: string): string {
    const name = unescaped(id);
    const plain = this.#shorthands.get(name) ?? name;
    if (isUrl(plain)) return plain;
    const colon = plain.indexOf(":");
    if (colon < 0) return `${OBO}${this.#ontology === "" ? "" : `${this.#ontology}#`}${plain}`;
    const local = plain.slice(colon + 1);
    const namespace = this.#prefixes.get(plain.slice(0, colon));
    if (namespace !== undefined) return nodeOf(namespace + local);
    return `${OBO}${plain.slice(0, colon)}${local.includes("_") ? "#_" : "_"}${local}`;
  }

  /** @param text the name, and words that are ignored */
  #emitName(subject: string, predicate: string, text: string): void {
    if (text !== "") this.#emitIri(subject, predicate, this.#iri(firstWord(text)));
  }

  #emitIri(subject: string, predicate: string, iri: string): void {
    this.#onStatement(subject, predicate, iri, nodeKind(iri), "", "");
  }

  #emitText(subject: string, predicate: string, text: string): void {
    this.#onStatement(subject, predicate, text, "literal", "", "");
  }
}

function isTrue(tag: string, text: string): boolean {
  if (text !== "true" && text !== "false") throw new SyntaxProblem(`${tag} is ${text.slice(0, 40)}`);
  return text === "true";
}

function isUrl(text: string): boolean {
  return /^(?:https?|urn|ftp):/.test(text);
}

function isExpression(qualifiers: string): boolean {
  return qualifiers !== "" && qualifierNames(qualifiers).some(name => EXPRESSION_QUALIFIERS.has(name));
}

/** `21:12:2015 10:30` as `2015-12-21`. */
function isoDate(text: string): string {
  const [, day, month, year] = /^(\d{2}):(\d{2}):(\d{4})\b/.exec(text) ?? [];
  return year === undefined ? text : `${year}-${month}-${day}`;
}
