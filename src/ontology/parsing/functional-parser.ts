import { BlankNodes, ONTOLOGY_NODE } from "./blank-nodes.ts";
import type { FileParser } from "./file-parser.ts";
import { checkDepth } from "./limits.ts";
import { AXIOMS, ENTITY_TYPES, emitAxiom, emitValue, iriOf, literalOf, type Operand } from "./owl-axiom.ts";
import { OwlPrefixes } from "./owl-prefixes.ts";
import { OwlTokenizer, type OwlTokenType } from "./owl-tokenizer.ts";
import { OWL_IMPORTS, OWL_ONTOLOGY, OWL_VERSION_IRI, RDF_TYPE } from "./rdf-vocabulary.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem, withLine } from "./syntax-problem.ts";

const OPERANDS_MAX = 4;
const EXPRESSIONS = new Set([
  ...["Annotation", "ObjectInverseOf", "ObjectPropertyChain", "DataIntersectionOf", "DataUnionOf"],
  ...["DataComplementOf", "DataOneOf", "DatatypeRestriction", "ObjectIntersectionOf", "ObjectUnionOf"],
  ...["ObjectComplementOf", "ObjectOneOf", "ObjectSomeValuesFrom", "ObjectAllValuesFrom", "ObjectHasValue"],
  ...["ObjectHasSelf", "ObjectMinCardinality", "ObjectMaxCardinality", "ObjectExactCardinality"],
  ...["DataSomeValuesFrom", "DataAllValuesFrom", "DataHasValue", "DataMinCardinality", "DataMaxCardinality"],
  ...["DataExactCardinality", "Body", "Head", "ClassAtom", "DataRangeAtom", "ObjectPropertyAtom"],
  ...["DataPropertyAtom", "BuiltInAtom", "SameIndividualAtom", "DifferentIndividualsAtom", "Variable"],
  ...["Nodes", "NodeAssertion", "Edges", "EdgeAssertion", "MainClasses"],
]);

interface OpenExpression {
  readonly name: string;
  /** The first operands. The others are only counted. */
  readonly operands: Operand[];
  count: number;
}

/** OWL functional syntax (https://www.w3.org/TR/owl2-syntax/). `owl-axiom.ts` says which axioms give statements. */
export class FunctionalParser implements FileParser {
  readonly format = "functional";
  readonly statementUnit = "axioms";
  statements = 0;
  readonly #onStatement: OnStatement;
  readonly #tokens = new OwlTokenizer((type, value) => this.#read(type, value));
  readonly #prefixes: OwlPrefixes;
  readonly #openExpressions: OpenExpression[] = [];
  /** The last word, until the next token shows whether it names an expression. */
  #word: string | undefined;
  /** The tokens of `Prefix(name:=<iri>)`. */
  #prefixTokens: string[] = [];
  #hasOntology = false;
  #ontology = "";
  #headerIris: string[] = [];
  /** Whether the datatype after `^^` comes next. */
  #isDatatypeNext = false;
  readonly #blanks = new BlankNodes();

  constructor(onStatement: OnStatement, base: string) {
    this.#onStatement = onStatement;
    this.#prefixes = new OwlPrefixes(base);
  }

  write(text: string): void {
    withLine(this.#tokens, () => this.#tokens.write(text));
  }

  end(): void {
    withLine(this.#tokens, () => {
      this.#tokens.end();
      if (this.#openExpressions.length > 0)
        throw new SyntaxProblem(`${this.#openExpressions.length} unclosed parentheses`);
      if (this.#word !== undefined) throw new SyntaxProblem("text after the ontology");
      if (!this.#hasOntology) throw new SyntaxProblem("no Ontology(...) found");
    });
  }

  #read(type: OwlTokenType, value: string): void {
    if (type === "mark" && value === "(") {
      this.#open();
      return;
    }
    this.#endWord();
    const expression = this.#openExpressions.at(-1);
    if (expression === undefined) {
      if (type !== "word") throw new SyntaxProblem(`unexpected ${describe(type, value)} outside Ontology(...)`);
      this.#word = value;
    } else if (expression.name === "Prefix") this.#prefixTokens.push(value);
    else if (type === "mark") this.#readMark(value);
    else if (type === "word") this.#word = value;
    else if (type === "iri") this.#readName(expression, this.#prefixes.full(value));
    else if (type === "string")
      this.#addOperand(expression, { kind: "literal", text: value, language: "", datatype: "" });
    else this.#qualify(expression, { language: value });
    if (expression?.name === "Prefix" && type === "mark" && value === ")") this.#close();
  }

  #readMark(value: string): void {
    if (value === ")") this.#close();
    else if (value === "^^") this.#isDatatypeNext = true;
    else if (value !== "=") throw new SyntaxProblem(`unexpected ${JSON.stringify(value)}`);
  }

  /** A word that no parenthesis follows is a name or a number. */
  #endWord(): void {
    const word = this.#word;
    if (word === undefined) return;
    this.#word = undefined;
    const expression = this.#openExpressions.at(-1);
    if (expression === undefined)
      throw new SyntaxProblem(`unexpected ${JSON.stringify(word.slice(0, 80))} outside Ontology(...)`);
    if (/^\d{1,10}$/.test(word)) this.#addOperand(expression, { kind: "other" });
    else if (!word.includes(":")) throw new SyntaxProblem(`unexpected ${JSON.stringify(word.slice(0, 80))}`);
    else this.#readName(expression, this.#prefixes.expand(word));
  }

  #readName(expression: OpenExpression, iri: string): void {
    if (this.#isDatatypeNext) {
      this.#isDatatypeNext = false;
      this.#qualify(expression, { datatype: iri });
    } else if (expression.name === "Ontology") {
      if (expression.count > 0 || this.#headerIris.length === 2)
        throw new SyntaxProblem("unexpected IRI between axioms");
      this.#headerIris.push(iri);
    } else this.#addOperand(expression, { kind: "iri", iri });
  }

  #qualify(
    { operands, count }: OpenExpression,
    change: { readonly language?: string; readonly datatype?: string },
  ): void {
    const last = operands.at(-1);
    if (count > operands.length) return;
    if (last?.kind !== "literal") throw new SyntaxProblem("language or datatype without a text");
    const { text, language, datatype } = { ...last, ...change };
    operands[operands.length - 1] = literalOf(text, language, datatype);
  }

  #open(): void {
    const parent = this.#openExpressions.at(-1);
    // In `HasKey(:A (:p) ())` the parenthesis after the name of the class does not belong to it.
    if (parent?.name === "HasKey" && this.#word?.includes(":")) this.#endWord();
    const name = this.#word;
    this.#word = undefined;
    if (name === undefined) {
      // Parentheses without a name group the operands of HasKey and DLSafeRule.
      if (parent === undefined) throw new SyntaxProblem('unexpected "("');
    } else if (parent === undefined) {
      if (name !== "Prefix" && name !== "Ontology") throw new SyntaxProblem(`unknown ${name.slice(0, 80)}(...)`);
      if (this.#hasOntology) throw new SyntaxProblem(`${name}(...) after the ontology`);
      this.#hasOntology = name === "Ontology";
    } else if (parent.name === "Ontology") this.#openInOntology(name);
    else if (!EXPRESSIONS.has(name) && !ENTITY_TYPES.has(name)) {
      throw new SyntaxProblem(`unknown expression ${name.slice(0, 80)}(...)`);
    }
    this.#prefixTokens = [];
    this.#openExpressions.push({ name: name ?? "", operands: [], count: 0 });
    checkDepth(this.#openExpressions.length, "parentheses", this.#tokens.line);
  }

  #openInOntology(name: string): void {
    this.#startOntology();
    if (name === "Import" || name === "Annotation") return;
    if (!AXIOMS.has(name)) throw new SyntaxProblem(`unknown axiom ${name.slice(0, 80)}(...)`);
    this.statements += 1;
  }

  /** The IRIs of the ontology are complete when its first part begins. */
  #startOntology(): void {
    if (this.#ontology !== "") return;
    const [iri = ONTOLOGY_NODE, versionIri] = this.#headerIris;
    this.#ontology = iri;
    this.#onStatement(iri, RDF_TYPE, OWL_ONTOLOGY, "iri", "", "");
    if (versionIri !== undefined) this.#onStatement(iri, OWL_VERSION_IRI, versionIri, "iri", "", "");
  }

  #close(): void {
    const expression = this.#openExpressions.pop();
    const parent = this.#openExpressions.at(-1);
    if (expression === undefined) throw new SyntaxProblem('unexpected ")"');
    if (this.#isDatatypeNext) throw new SyntaxProblem("missing datatype");
    if (expression.name === "Prefix" && parent === undefined) this.#endPrefix();
    else if (expression.name === "Ontology") this.#startOntology();
    else if (parent?.name === "Ontology") {
      parent.count += 1;
      this.#endPart(expression);
    } else if (parent !== undefined && expression.name !== "Annotation")
      this.#addOperand(parent, operandOf(expression));
  }

  #endPart({ name, operands, count }: OpenExpression): void {
    const [first, second] = operands;
    const least = name === "Import" ? 1 : name === "Annotation" ? 2 : (AXIOMS.get(name) ?? 0);
    if (count < least) throw new SyntaxProblem(`${name} has ${count} operands, expected at least ${least}`);
    const iri = iriOf(first);
    if (name === "Import") {
      if (iri !== undefined) this.#onStatement(this.#ontology, OWL_IMPORTS, iri, "iri", "", "");
    } else if (name === "Annotation") {
      if (iri !== undefined && second !== undefined) emitValue(this.#ontology, iri, second, this.#onStatement);
    } else {
      emitAxiom(name, count > operands.length ? [] : operands, this.#onStatement, this.#blanks);
    }
  }

  #endPrefix(): void {
    const [name = "", equals, iri, end] = this.#prefixTokens;
    if (!name.endsWith(":") || equals !== "=" || iri === undefined || end !== ")") {
      throw new SyntaxProblem("invalid prefix; expected Prefix(name:=<iri>)");
    }
    this.#prefixes.declare(name, iri);
  }

  #addOperand(expression: OpenExpression, operand: Operand): void {
    expression.count += 1;
    if (expression.operands.length < OPERANDS_MAX) expression.operands.push(operand);
  }
}

function operandOf({ name, operands, count }: OpenExpression): Operand {
  const [first, second] = operands;
  const type = ENTITY_TYPES.get(name);
  const iri = iriOf(first);
  if (type !== undefined && iri !== undefined && count === 1) return { kind: "entity", type, iri };
  if (type !== undefined) throw new SyntaxProblem(`${name}(...) must contain exactly one IRI`);
  const filler = iriOf(second);
  if (name === "ObjectSomeValuesFrom" && count === 2 && iri !== undefined && filler !== undefined) {
    return { kind: "some", property: iri, filler };
  }
  return { kind: "other" };
}

function describe(type: OwlTokenType, value: string): string {
  return `${type === "mark" ? "" : `${type} `}${JSON.stringify(value.slice(0, 80))}`;
}
