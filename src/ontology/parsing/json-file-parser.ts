import type { OntologyFileFormat } from "../format.ts";
import type { FileParser, StatementUnit } from "./file-parser.ts";
import { JsonLdParser } from "./json-ld-parser.ts";
import { JsonSplitter } from "./json-splitter.ts";
import { checkDepth, JSON_LD_DEPTH_MAX } from "./limits.ts";
import { ObographsParser } from "./obographs-parser.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem, withLine } from "./syntax-problem.ts";

/** A JSON file. Its keys decide whether it is an obographs document (`graphs`) or JSON-LD (`@context`, `@graph`). */
export class JsonFileParser implements FileParser {
  readonly #splitter: JsonSplitter;
  readonly #obographs: ObographsParser;
  readonly #jsonLd: JsonLdParser;
  #triples = 0;
  /** Whether the file is a list, and its values are the items. */
  #isList = false;
  format: OntologyFileFormat | undefined;

  constructor(onStatement: OnStatement, base: string) {
    const count: OnStatement = (...statement) => {
      this.#triples += 1;
      onStatement(...statement);
    };
    this.#obographs = new ObographsParser(count);
    this.#jsonLd = new JsonLdParser(count, base);
    this.#splitter = new JsonSplitter({
      descends: (path, container) => this.#descends(path, container),
      value: (path, value, levels) => this.#value(path, value, levels),
      end: path => {
        if (this.format === "obographs") this.#obographs.endContainer(path);
      },
    });
  }

  get statements(): number {
    return this.format === "obographs" ? this.#obographs.nodes : this.#triples;
  }

  get statementUnit(): StatementUnit {
    return this.format === "obographs" ? "nodes" : "triples";
  }

  get note(): string | undefined {
    return this.#jsonLd.note;
  }

  write(text: string): void {
    withLine(this.#splitter, () => this.#splitter.write(text));
  }

  end(): void {
    withLine(this.#splitter, () => {
      this.#splitter.end();
      if (this.format === "json-ld") this.#jsonLd.end();
      if (this.format === undefined) throw new SyntaxProblem('JSON without "graphs", "@context", "@graph" or "@id"');
    });
  }

  #descends(path: readonly string[], container: "object" | "list"): boolean {
    const [key] = path;
    if (key === undefined) {
      this.#isList = container === "list";
      return true;
    }
    if (this.#decideFormat(key) === "obographs" && key === "graphs") return ObographsParser.descends(path, container);
    return path.length === 1 && key === "@graph" && container === "list";
  }

  #value(path: readonly string[], value: unknown, levels: number): void {
    const [key] = path;
    if (key === undefined) throw new SyntaxProblem("JSON is not an object or a list");
    const format = this.#decideFormat(key);
    if (format === "obographs") {
      if (key === "graphs") this.#obographs.value(path, value);
      return;
    }
    checkDepth(levels, "values", this.#splitter.line, JSON_LD_DEPTH_MAX);
    if (this.#isList || (key === "@graph" && path.length === 2)) this.#jsonLd.node(value, this.#isList);
    else this.#jsonLd.member(key, value);
  }

  /**
   * Sets `format` at the first key that belongs to one format, and returns it. Members before that key are kept, because
   * the file may be JSON-LD.
   */
  #decideFormat(key: string): OntologyFileFormat | undefined {
    if (this.format === undefined) {
      if (this.#isList || key.startsWith("@")) this.format = "json-ld";
      else if (key === "graphs") this.format = "obographs";
    }
    return this.format;
  }
}
