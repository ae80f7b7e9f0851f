import type { OntologyFileFormat } from "../format.ts";
import type { FileParser, StatementUnit } from "./file-parser.ts";
import { OwlXmlParser } from "./owl-xml-parser.ts";
import { OWL, RDF } from "./rdf-vocabulary.ts";
import { RdfXmlParser } from "./rdf-xml-parser.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";
import type { XmlName } from "./xml-namespaces.ts";
import { type XmlHandler, XmlReader } from "./xml-reader.ts";

/** An XML file. Its root element decides whether it is RDF/XML or OWL/XML. */
export class XmlFileParser implements FileParser {
  readonly #reader: XmlReader;
  readonly #onStatement: OnStatement;
  #handler: XmlHandler | undefined;
  #owl: OwlXmlParser | undefined;
  #triples = 0;
  format: OntologyFileFormat | undefined;

  constructor(onStatement: OnStatement, base: string) {
    this.#onStatement = (...statement) => {
      this.#triples += 1;
      onStatement(...statement);
    };
    this.#reader = new XmlReader({
      open: (name, attributes) => {
        this.#handler ??= this.#handlerOf(name, base);
        this.#handler.open(name, attributes);
      },
      text: text => this.#handler?.text?.(text),
      close: name => this.#handler?.close?.(name),
    });
  }

  get statements(): number {
    return this.#owl?.axioms ?? this.#triples;
  }

  get statementUnit(): StatementUnit {
    return this.#owl === undefined ? "triples" : "axioms";
  }

  write(text: string): void {
    this.#reader.write(text);
  }

  end(): void {
    this.#reader.end();
  }

  #handlerOf({ namespace, local, raw }: XmlName, base: string): XmlHandler {
    if (namespace === OWL && local === "Ontology") {
      this.format = "owl-xml";
      this.#owl = new OwlXmlParser(this.#onStatement, base);
      return this.#owl;
    }
    const isRdf = namespace === RDF ? local === "RDF" || local === "Description" : namespace !== "";
    if (!isRdf || !this.#reader.namespaces.declares(RDF)) {
      throw new SyntaxProblem(`root element ${raw.slice(0, 80)} is neither rdf:RDF nor Ontology in the OWL namespace`);
    }
    this.format = "rdf-xml";
    return new RdfXmlParser(this.#onStatement, base);
  }
}
