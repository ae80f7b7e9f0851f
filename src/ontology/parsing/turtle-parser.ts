import { Parser } from "n3";
import type { OntologyFileFormat } from "../format.ts";
import type { FileParser } from "./file-parser.ts";
import { IriBase } from "./iri-base.ts";
import { checkBase, checkDepth, checkNamespace, checkPending } from "./limits.ts";
import { formatTerm } from "./n-triples-text.ts";
import type { ObjectKind, OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/** The formats that n3 parses. */
export type TurtleFormat = "turtle" | "trig" | "n-triples" | "n-quads";

const MEDIA_TYPES: Readonly<Record<TurtleFormat, string>> = {
  turtle: "text/turtle",
  trig: "application/trig",
  "n-triples": "application/n-triples",
  "n-quads": "application/n-quads",
};
const OPENING = new Set(["[", "(", "{", "<<", "<<("]);
const CLOSING = new Set(["]", ")", "}", ">>", ")>>"]);
const XSD_STRING = "http://www.w3.org/2001/XMLSchema#string";
const LANGUAGE_STRINGS = ["langString", "dirLangString"].map(
  name => `http://www.w3.org/1999/02/22-rdf-syntax-ns#${name}`,
);

interface Term {
  readonly termType: string;
  readonly value: string;
  readonly language?: string;
  readonly direction?: string | null;
  readonly datatype?: { readonly value: string };
  readonly subject?: Term;
  readonly predicate?: Term;
  readonly object?: Term;
}

interface Token {
  readonly type: string;
  readonly value?: string;
  readonly line: number;
}

/** The callbacks of n3 2.13; its type declarations lack some. */
interface Callbacks {
  onQuad(error: Error | null, quad: (Term & { readonly graph: Term }) | null): void;
  onPrefix(prefix: string, iri: { readonly value: string }): void;
  onToken(token: Token): void;
}

/** The text of triple terms may be so many times as long as the file: each `~` repeats the statement before it. */
const TRIPLE_TEXT_RATIO_MAX = 16;
/** For small files. */
const TRIPLE_TEXT_MIN = 1_000_000;

/** Turtle, TriG, N-Triples or N-Quads, parsed by n3 with limits on nesting, on prefixes and bases, and on repetition. */
export class TurtleParser implements FileParser {
  readonly statementUnit = "triples";
  statements = 0;
  readonly #format: TurtleFormat;
  readonly #onStatement: OnStatement;
  #write: (text: string) => void = () => undefined;
  #finish: () => void = () => undefined;
  #problem: Error | undefined;
  #hasGraphs = false;
  #depth = 0;
  #line = 1;
  #previousType = "";
  #pending = 0;
  #base: IriBase;
  /** The length of the IRI of the file itself, which may be a long signed URL. */
  readonly #documentLength: number;
  /** Characters of the file so far, and of the text of its triple terms. */
  #characters = 0;
  #tripleCharacters = 0;

  constructor(format: TurtleFormat, onStatement: OnStatement, base: string) {
    this.#format = format;
    this.#onStatement = onStatement;
    this.#base = new IriBase(base);
    this.#documentLength = base.length;
    const isLineFormat = format === "n-triples" || format === "n-quads";
    const parser = new Parser({ format: MEDIA_TYPES[format], ...(isLineFormat ? {} : { baseIRI: base }) });
    const input = {
      on: (event: string, callback: (text?: string) => void) => {
        if (event === "data") this.#write = callback;
        if (event === "end") this.#finish = callback;
      },
    };
    const callbacks: Callbacks = {
      onQuad: (error, quad) => {
        if (error !== null) this.#problem ??= error;
        else if (quad !== null) this.#emit(quad);
      },
      onPrefix: (_prefix, iri) => checkNamespace(iri?.value ?? ""),
      onToken: token => this.#check(token),
    };
    Reflect.apply(parser.parse, parser, [input, callbacks]);
  }

  /** A TriG file without a named graph is also Turtle, which more tools read. */
  get format(): OntologyFileFormat {
    return this.#format === "trig" && !this.#hasGraphs ? "turtle" : this.#format;
  }

  write(text: string): void {
    this.#pending += text.length;
    this.#characters += text.length;
    this.#run(() => this.#write(text));
    checkPending(this.#pending, this.#line);
  }

  end(): void {
    this.#run(() => this.#finish());
  }

  #run(work: () => void): void {
    try {
      work();
    } catch (error) {
      // After some errors that it has reported, such as in `prefix :<:>`, n3 continues and throws another error.
      if (this.#problem === undefined) throw error;
    }
    if (this.#problem !== undefined) throw problemOf(this.#problem);
  }

  #check({ type, value = "", line }: Token): void {
    this.#line = line;
    this.#pending = 0;
    if (OPENING.has(type)) {
      this.#depth += 1;
      checkDepth(this.#depth, "brackets", line);
    } else if (CLOSING.has(type)) this.#depth -= 1;
    else if (type === "IRI" && /^@?base$/i.test(this.#previousType)) {
      // Against the base before it, as n3 does: relative ones would grow without limit.
      const base = this.#base.resolve(value);
      if (base.length > this.#documentLength) checkBase(base, line);
      this.#base = new IriBase(base);
    }
    this.#previousType = type;
  }

  /** The text of a subject or object. @throws SyntaxProblem if the file repeats its statements without end */
  #nodeText(term: Term): string {
    if (term.termType !== "Quad") return textOf(term);
    const max = TRIPLE_TEXT_MIN + TRIPLE_TEXT_RATIO_MAX * this.#characters;
    // Before the text is built: n3 gives the same term for each reifier.
    this.#tripleCharacters += charactersOf(term);
    if (this.#tripleCharacters > max) throw new SyntaxProblem("the triple terms repeat too much text", this.#line);
    return textOf(term);
  }

  #emit(quad: Term & { readonly graph: Term }): void {
    const { subject, predicate, object, graph } = quad;
    this.statements += 1;
    if (graph.termType !== "DefaultGraph") this.#hasGraphs = true;
    if (subject === undefined || predicate === undefined || object === undefined) return;
    const language = languageOf(object);
    this.#onStatement(
      this.#nodeText(subject),
      textOf(predicate),
      this.#nodeText(object),
      kindOf(object),
      language,
      datatypeOf(object, language),
    );
  }
}

function problemOf(error: Error): SyntaxProblem {
  if (error instanceof SyntaxProblem) return error;
  const { line } = (error as { context?: { line?: number } }).context ?? {};
  // n3 ends its messages with "on line 12.".
  return new SyntaxProblem(error.message.slice(0, 300).replace(/ on line \d{1,12}\.$/, ""), line);
}

function textOf(term: Term): string {
  if (term.termType === "BlankNode") return `_:${term.value}`;
  if (term.termType !== "Quad") return term.value;
  const { subject, predicate, object } = term;
  if (subject === undefined || predicate === undefined || object === undefined) return "";
  return `<<( ${formatted(subject)} ${formatted(predicate)} ${formatted(object)} )>>`;
}

/** The length of the text of a term, without escapes. */
function charactersOf({ value, subject, predicate, object }: Term): number {
  if (subject === undefined || predicate === undefined || object === undefined) return value.length;
  return charactersOf(subject) + charactersOf(predicate) + charactersOf(object);
}

function formatted(term: Term): string {
  const language = languageOf(term);
  return formatTerm(textOf(term), kindOf(term), language, datatypeOf(term, language));
}

function kindOf({ termType }: Term): ObjectKind {
  if (termType === "Literal") return "literal";
  if (termType === "BlankNode") return "blank";
  return termType === "Quad" ? "triple" : "iri";
}

function languageOf({ termType, language = "", direction }: Term): string {
  if (termType !== "Literal") return "";
  return direction ? `${language}--${direction}` : language;
}

function datatypeOf({ termType, datatype }: Term, language: string): string {
  if (termType !== "Literal" || datatype === undefined || language !== "") return "";
  const { value } = datatype;
  return value === XSD_STRING || LANGUAGE_STRINGS.includes(value) ? "" : value;
}
