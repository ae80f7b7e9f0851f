import { BlankNodes, ONTOLOGY_NODE } from "./blank-nodes.ts";
import { ManchesterAnnotations } from "./manchester-annotations.ts";
import { emitRestriction, emitValue, literalOf } from "./owl-axiom.ts";
import {
  ANNOTATION_PROPERTY,
  NAMED_INDIVIDUAL,
  OBJECT_PROPERTY,
  OWL,
  OWL_CLASS,
  OWL_IMPORTS,
  OWL_ONTOLOGY,
  OWL_VERSION_IRI,
  RDF_TYPE,
  RDFS,
  SUB_CLASS_OF,
  SUB_PROPERTY_OF,
  XSD,
} from "./rdf-vocabulary.ts";
import { nodeKind, type OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/** A token of an item, with names expanded. */
export interface ManchesterPart {
  readonly type: "name" | "string" | "language" | "word" | "mark";
  readonly value: string;
}

const TYPES: Readonly<Record<string, string>> = {
  Class: OWL_CLASS,
  ObjectProperty: OBJECT_PROPERTY,
  DataProperty: `${OWL}DatatypeProperty`,
  AnnotationProperty: ANNOTATION_PROPERTY,
  Datatype: `${RDFS}Datatype`,
  Individual: NAMED_INDIVIDUAL,
};
const PREDICATES: Readonly<Record<string, string>> = {
  SubClassOf: SUB_CLASS_OF,
  SubPropertyOf: SUB_PROPERTY_OF,
  EquivalentTo: `${OWL}equivalentClass`,
  DisjointWith: `${OWL}disjointWith`,
  InverseOf: `${OWL}inverseOf`,
  Inverses: `${OWL}inverseOf`,
  Types: RDF_TYPE,
  SameAs: `${OWL}sameAs`,
  DifferentFrom: `${OWL}differentFrom`,
  Domain: `${RDFS}domain`,
  Range: `${RDFS}range`,
};
/** The predicates that differ if the frame is about a property. */
const PROPERTY_PREDICATES: Readonly<Record<string, string>> = {
  EquivalentTo: `${OWL}equivalentProperty`,
  DisjointWith: `${OWL}propertyDisjointWith`,
};
/** Frames without a subject. If they have two items, each of them one name, the items have this relation. */
const FRAME_PREDICATES: Readonly<Record<string, string>> = {
  EquivalentClasses: `${OWL}equivalentClass`,
  DisjointClasses: `${OWL}disjointWith`,
  EquivalentProperties: `${OWL}equivalentProperty`,
  DisjointProperties: `${OWL}propertyDisjointWith`,
  SameIndividual: `${OWL}sameAs`,
  DifferentIndividuals: `${OWL}differentFrom`,
};
/** Sections and frames whose items are pairs of a property and a value, or atoms of a rule. */
const PAIRED = new Set(["Annotations", "Facts", "Rule", "HasKey"]);
const HEADERS = new Set(["", "Ontology", "Import"]);
/** More than the parts of every item that gives a statement: the longest is property, text, `^^`, datatype. */
const PARTS_MAX = 5;

/** Collects the items of a section up to each comma, and emits the statements of those that relate names. */
export class ManchesterFrames {
  readonly #onStatement: OnStatement;
  #ontologyIri = ONTOLOGY_NODE;
  #frame = "";
  #section = "";
  #subject = "";
  #names: string[] = [];
  /** The first items of a frame without a subject; an empty text for an item that is not one name. */
  #items: string[] = [];
  /** The first parts of the open item. The others are only counted. */
  #parts: ManchesterPart[] = [];
  #count = 0;
  #depth = 0;
  #previous: ManchesterPart | undefined;
  readonly #blanks = new BlankNodes();
  readonly #annotations = new ManchesterAnnotations();
  axioms = 0;

  constructor(onStatement: OnStatement) {
    this.#onStatement = onStatement;
  }

  /** A keyword begins a frame, or a section of the open frame. */
  keyword(name: string, isFrame: boolean): void {
    if (name === "Annotations" && this.#isBeforeItem()) {
      this.#annotations.begin();
      return;
    }
    this.#annotations.close();
    if (this.#depth > 0) throw new SyntaxProblem(`unexpected ${name}: inside brackets`);
    this.end();
    if (isFrame) {
      this.#frame = name;
      this.#names = [];
      this.#start("");
    } else {
      if (this.#subject === "" && this.#frame !== "Rule" && TYPES[this.#frame] !== undefined) {
        throw new SyntaxProblem(`name missing after "${this.#frame}:"`);
      }
      this.#start(name);
    }
  }

  /** One token of the open item or of its annotations, or the comma after it. */
  add(part: ManchesterPart): void {
    if (this.#annotations.takes(part)) return;
    const { type, value } = part;
    if (type === "mark" && value === "," && this.#depth === 0) {
      this.#endItem();
      this.#previous = undefined;
      return;
    }
    if (type === "mark" && (value === "(" || value === "[" || value === "{")) this.#depth += 1;
    if (type === "mark" && CLOSING.has(value)) this.#depth -= 1;
    this.#checkOrder(part);
    this.#previous = part;
    if (this.#section === "" && this.#frame !== "Rule") this.#readFrameName(part);
    this.#count += 1;
    if (this.#parts.length < PARTS_MAX) this.#parts.push(part);
  }

  end(): void {
    this.#annotations.close();
    if (this.#section !== "" && this.#count === 0) throw new SyntaxProblem(`value missing after "${this.#section}:"`);
    if (this.#frame !== "" && this.#section === "" && this.#count === 0 && this.#frame !== "Ontology") {
      throw new SyntaxProblem(`name missing after "${this.#frame}:"`);
    }
    if (this.#count > 0) this.#endItem();
    this.#emitFrame();
  }

  #emitFrame(): void {
    const [first, second, third] = this.#items;
    this.#items = [];
    if (first === undefined || !this.#isAxiomFrame()) return;
    this.axioms += 1;
    const predicate = FRAME_PREDICATES[this.#frame];
    if (predicate !== undefined && first !== "" && second && third === undefined)
      this.#emitIri(first, predicate, second);
  }

  /** Whether the frame is an axiom or a rule of its own, such as `DisjointClasses`. */
  #isAxiomFrame(): boolean {
    return !HEADERS.has(this.#frame) && TYPES[this.#frame] === undefined;
  }

  /** Sections, and frames that begin with an item, such as `DisjointClasses`. */
  #isBeforeItem(): boolean {
    return this.#count === 0 && (this.#section !== "" || this.#isAxiomFrame());
  }

  #start(section: string): void {
    this.#section = section;
    this.#parts = [];
    this.#count = 0;
    this.#previous = undefined;
    if (section === "" && this.#frame !== "Import") this.#subject = this.#frame === "Ontology" ? ONTOLOGY_NODE : "";
  }

  /** Two names or texts without an operator between them occur only in pairs. */
  #checkOrder({ type, value }: ManchesterPart): void {
    const before = this.#previous;
    const isOperand = type === "name" || type === "string";
    const isAfterOperand = before?.type === "name" || before?.type === "string";
    const isPaired = PAIRED.has(this.#section) || this.#frame === "Rule";
    const isHeader = this.#section === "" && this.#frame === "Ontology";
    if (isOperand && isAfterOperand && !isPaired && !isHeader && this.#section !== "") {
      throw new SyntaxProblem(`unexpected ${JSON.stringify(value.slice(0, 80))} after a name`);
    }
    if (type === "language" && before?.type !== "string") throw new SyntaxProblem("language without a text");
    if (value === "^^" && type === "mark" && before?.type !== "string")
      throw new SyntaxProblem("datatype without a text");
  }

  #readFrameName({ type, value }: ManchesterPart): void {
    if (type !== "name") return;
    this.#names.push(value);
    if (this.#names.length > 2) return;
    if (this.#frame === "Import") {
      this.#emitIri(this.#ontologyIri, OWL_IMPORTS, value);
    } else if (this.#frame === "Ontology") {
      if (this.#names.length === 1) {
        this.#subject = value;
        this.#ontologyIri = value;
        this.#emitIri(value, RDF_TYPE, OWL_ONTOLOGY);
      } else this.#emitIri(this.#ontologyIri, OWL_VERSION_IRI, value);
    } else {
      this.#subject = value;
      const declared = TYPES[this.#frame];
      if (declared !== undefined) {
        this.axioms += 1;
        this.#emitIri(value, RDF_TYPE, declared);
      }
    }
  }

  #endItem(): void {
    const parts = this.#parts;
    const count = this.#count;
    if (count === 0) throw new SyntaxProblem("empty item in a list");
    this.#parts = [];
    this.#count = 0;
    const section = this.#section;
    const [first, operator, filler] = parts;
    if (section === "") {
      if (this.#items.length < 3) this.#items.push(count === 1 && first?.type === "name" ? first.value : "");
      return;
    }
    this.axioms += 1;
    if (count > parts.length) return;
    if (section === "Annotations" || section === "Facts") this.#emitPair(parts);
    if (section === "Characteristics" && first?.type === "word" && CHARACTERISTICS.has(first.value))
      this.#emitIri(this.#subject, RDF_TYPE, `${OWL}${first.value}Property`);
    const predicate =
      (this.#frame.endsWith("Property") ? PROPERTY_PREDICATES[section] : undefined) ?? PREDICATES[section];
    if (predicate === undefined || this.#subject === "") return;
    if (count === 1 && first?.type === "name") this.#emitIri(this.#subject, predicate, first.value);
    const isSome = count === 3 && operator?.value === "some" && operator.type === "word" && section === "SubClassOf";
    if (isSome && first?.type === "name" && filler?.type === "name") {
      emitRestriction(this.#subject, first.value, filler.value, this.#onStatement, this.#blanks.next());
    }
  }

  #emitPair(parts: readonly ManchesterPart[]): void {
    const [property, value, qualifier, datatype] = parts;
    const subject = this.#frame === "Import" ? this.#ontologyIri : this.#subject;
    if (property?.type !== "name" || value === undefined || subject === "") return;
    if (value.type === "name") this.#emitIri(subject, property.value, value.value);
    else if (value.type === "string") {
      const language = qualifier?.type === "language" ? qualifier.value : "";
      const type = qualifier?.value === "^^" && datatype !== undefined ? datatypeOf(datatype) : "";
      emitValue(subject, property.value, literalOf(value.value, language, type), this.#onStatement);
    } else if (value.type === "word") {
      this.#onStatement(subject, property.value, value.value, "literal", "", wordType(value.value));
    }
  }

  #emitIri(subject: string, predicate: string, iri: string): void {
    this.#onStatement(subject, predicate, iri, nodeKind(iri), "", "");
  }
}

const CLOSING = new Set([")", "]", "}"]);
const CHARACTERISTICS = new Set([
  ...["Functional", "InverseFunctional", "Reflexive", "Irreflexive", "Symmetric", "Asymmetric", "Transitive"],
]);

function datatypeOf({ type, value }: ManchesterPart): string {
  return type === "name" ? value : `${XSD}${value}`;
}

function wordType(word: string): string {
  return `${XSD}${word === "true" || word === "false" ? "boolean" : /^[+-]?\d+$/.test(word) ? "integer" : "decimal"}`;
}
