import type { FileParser } from "./file-parser.ts";
import { checkDepth } from "./limits.ts";
import { ManchesterFrames } from "./manchester-frames.ts";
import { OwlPrefixes } from "./owl-prefixes.ts";
import { OwlTokenizer, type OwlTokenType } from "./owl-tokenizer.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem, withLine } from "./syntax-problem.ts";

/** The keywords that begin a frame, without their colon. */
const FRAMES = new Set([
  ...["Class", "ObjectProperty", "DataProperty", "AnnotationProperty", "Datatype", "Individual", "Rule"],
  ...["DisjointClasses", "EquivalentClasses", "EquivalentProperties", "DisjointProperties", "SameIndividual"],
  ...["DifferentIndividuals", "ValuePartition"],
]);
const HEADERS = new Set(["Prefix", "Namespace", "Ontology", "Import"]);
/** The keywords of the sections of a frame. */
const SECTIONS = new Set([
  ...["Annotations", "SubClassOf", "EquivalentTo", "DisjointWith", "DisjointUnionOf", "HasKey", "SuperClassOf"],
  ...["Domain", "Range", "Characteristics", "SubPropertyOf", "SuperPropertyOf", "InverseOf", "SubPropertyChain"],
  ...["InverseOf", "Inverses", "Types", "Facts", "SameAs", "DifferentFrom"],
]);
const PAIRS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

/**
 * Manchester syntax (https://www.w3.org/TR/owl2-manchester-syntax/): frames of sections, each a list of items. Brackets,
 * lists, prefixes and the order of names and operators are checked.
 */
export class ManchesterParser implements FileParser {
  readonly format = "manchester";
  readonly statementUnit = "axioms";
  readonly #tokens = new OwlTokenizer((type, value) => this.#read(type, value));
  readonly #frames: ManchesterFrames;
  readonly #brackets: string[] = [];
  readonly #prefixes: OwlPrefixes;
  #isStarted = false;
  /** The name in `Prefix: name: <iri>`, until its IRI is read. */
  #prefixName: string | undefined;
  /** Whether a prefix declaration is open. */
  #isInPrefix = false;

  constructor(onStatement: OnStatement, base: string) {
    this.#prefixes = new OwlPrefixes(base);
    this.#frames = new ManchesterFrames(onStatement);
  }

  get statements(): number {
    return this.#frames.axioms;
  }

  write(text: string): void {
    withLine(this.#tokens, () => this.#tokens.write(text));
  }

  end(): void {
    withLine(this.#tokens, () => {
      this.#tokens.end();
      this.#checkClosed();
      this.#frames.end();
    });
  }

  #read(type: OwlTokenType, value: string): void {
    if (type === "word" && value.endsWith(":") && this.#readKeyword(value.slice(0, -1))) return;
    if (!this.#isStarted) throw new SyntaxProblem(`expected "Prefix:", "Ontology:" or a frame`);
    if (this.#isInPrefix) this.#readPrefix(type, value);
    else if (type === "mark") this.#readMark(value);
    else if (type === "iri") this.#frames.add({ type: "name", value: this.#prefixes.full(value) });
    else if (type !== "word") this.#frames.add({ type, value });
    else if (isPlainWord(value)) this.#frames.add({ type: "word", value });
    else this.#frames.add({ type: "name", value: this.#prefixes.expand(value) });
  }

  #readKeyword(name: string): boolean {
    const isFrame = FRAMES.has(name);
    const isHeader = HEADERS.has(name);
    if (!isFrame && !isHeader && !SECTIONS.has(name)) return false;
    // `Prefix: Class: <iri>` declares a prefix with the name of a keyword.
    if (this.#isInPrefix && this.#prefixName === undefined) return false;
    if (!this.#isStarted && !isFrame && !isHeader) return false;
    this.#isStarted = true;
    if (isFrame || isHeader || this.#brackets.length === 0) this.#checkClosed();
    if (this.#isInPrefix) throw new SyntaxProblem("incomplete prefix; expected Prefix: name: <iri>");
    this.#isInPrefix = name === "Prefix" || name === "Namespace";
    this.#prefixName = undefined;
    if (!this.#isInPrefix) this.#frames.keyword(name, isFrame || isHeader);
    return true;
  }

  #readPrefix(type: OwlTokenType, value: string): void {
    if (this.#prefixName === undefined && type === "word" && value.endsWith(":")) this.#prefixName = value;
    else if (this.#prefixName !== undefined && type === "iri") {
      this.#prefixes.declare(this.#prefixName, value);
      this.#isInPrefix = false;
    } else throw new SyntaxProblem("invalid prefix; expected Prefix: name: <iri>");
  }

  #readMark(value: string): void {
    const opening = PAIRS[value];
    if (opening !== undefined && this.#brackets.pop() !== opening) throw new SyntaxProblem(`unexpected "${value}"`);
    if (value === "(" || value === "[" || value === "{") {
      this.#brackets.push(value);
      checkDepth(this.#brackets.length, "brackets", this.#tokens.line);
    }
    this.#frames.add({ type: "mark", value });
  }

  #checkClosed(): void {
    const open = this.#brackets.at(-1);
    if (open !== undefined) throw new SyntaxProblem(`unclosed "${open}"`);
  }
}

/** Numbers, operators and built-in names, which have no prefix. Other names without a colon have the empty prefix. */
function isPlainWord(word: string): boolean {
  return (
    /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fF]?$/.test(word) ||
    /^(?:and|or|not|some|only|value|min|max|exactly|Self|self|that|inverse|o|true|false|integer|decimal|float|string|length|minLength|maxLength|pattern|langRange|Functional|InverseFunctional|Reflexive|Irreflexive|Symmetric|Asymmetric|Antisymmetric|Transitive|-)$/.test(
      word,
    ) ||
    word.startsWith("?")
  );
}
