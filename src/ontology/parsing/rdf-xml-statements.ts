import { BlankNodes } from "./blank-nodes.ts";
import { formatTerm } from "./n-triples-text.ts";
import { RDF, RDF_TYPE } from "./rdf-vocabulary.ts";
import { nodeKind, type ObjectKind, type OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

const REIFIES = `${RDF}reifies`;

/** A property element: its subject and predicate, and how its statement is reified. Empty texts mean none. */
export interface PropertyElement {
  readonly subject: string;
  readonly predicate: string;
  /** The IRI of the reified statement (`rdf:ID`). */
  readonly statementId: string;
  /** The reifier (`rdf:annotation`). */
  readonly reifier: string;
}

/** Emits the statements of an RDF/XML file: plain and reified ones, and those that become triple terms. */
export class RdfXmlStatements {
  readonly #onStatement: OnStatement;
  readonly #blanks = new BlankNodes();
  /** The statements of the innermost open triple term. */
  #terms: string[] | undefined;
  /** The statements of the triple terms around it, the outermost first. */
  readonly #outerTerms: (string[] | undefined)[] = [];

  constructor(onStatement: OnStatement) {
    this.#onStatement = onStatement;
  }

  newBlank(): string {
    return this.#blanks.next();
  }

  emit(subject: string, predicate: string, object: string, kind: ObjectKind, language = "", datatype = ""): void {
    if (this.#terms === undefined) this.#onStatement(subject, predicate, object, kind, language, datatype);
    else this.#terms.push(tripleTerm(subject, predicate, object, kind, language, datatype));
  }

  /** Emits the statement of a property element, with its reification. */
  emitProperty(property: PropertyElement, object: string, kind: ObjectKind, language = "", datatype = ""): void {
    const { subject, predicate, statementId, reifier } = property;
    this.emit(subject, predicate, object, kind, language, datatype);
    if (reifier !== "")
      this.emit(reifier, REIFIES, tripleTerm(subject, predicate, object, kind, language, datatype), "triple");
    if (statementId === "") return;
    this.emit(statementId, RDF_TYPE, `${RDF}Statement`, "iri");
    this.emit(statementId, `${RDF}subject`, subject, nodeKind(subject));
    this.emit(statementId, `${RDF}predicate`, predicate, "iri");
    this.emit(statementId, `${RDF}object`, object, kind, language, datatype);
  }

  /** The statements up to `endTriple` are not emitted: they become one triple term. */
  beginTriple(): void {
    this.#outerTerms.push(this.#terms);
    this.#terms = [];
  }

  /** Returns the triple term. @throws SyntaxProblem unless there was one statement. */
  endTriple(): string {
    const [only, ...others] = this.#terms ?? [];
    this.#terms = this.#outerTerms.pop();
    if (only !== undefined && others.length === 0) return only;
    const count = only === undefined ? 0 : 1 + others.length;
    throw new SyntaxProblem(`rdf:parseType="Triple" contains ${count} statements, expected 1`);
  }
}

function tripleTerm(...[subject, predicate, object, kind, language, datatype]: Parameters<OnStatement>): string {
  return `<<( ${formatTerm(subject, nodeKind(subject))} ${formatTerm(predicate, "iri")} ${formatTerm(object, kind, language, datatype)} )>>`;
}
