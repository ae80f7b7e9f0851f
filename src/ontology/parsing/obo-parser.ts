import type { FileParser } from "./file-parser.ts";
import { checkPending } from "./limits.ts";
import { OboLines } from "./obo-lines.ts";
import { OboStatements } from "./obo-statements.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

const STANZAS = new Set(["Term", "Typedef", "Instance"]);

/** OBO 1.2 and 1.4: a header of tags, then stanzas, each with one id. No maintained parser exists for Node. */
export class OboParser implements FileParser {
  readonly format = "obo";
  readonly statementUnit = "stanzas";
  statements = 0;
  readonly #lines = new OboLines();
  readonly #statements: OboStatements;
  #line = 0;
  #pending = 0;
  #stanza: string | undefined;
  #id: string | undefined;

  /** @param shorthands see `OboStatements` */
  constructor(onStatement: OnStatement, shorthands?: ReadonlyMap<string, string>) {
    this.#statements = new OboStatements(onStatement, shorthands);
  }

  get shorthands(): ReadonlyMap<string, string> {
    return this.#statements.foundShorthands;
  }

  write(text: string): void {
    this.#pending += text.length;
    for (const line of this.#lines.split(text)) this.#read(line);
    checkPending(this.#pending, this.#line);
  }

  end(): void {
    for (const line of this.#lines.end()) this.#read(line);
    this.#closeStanza();
    this.#statements.end();
  }

  #read(logicalLine: { readonly text: string; readonly lines: number }): void {
    this.#line += logicalLine.lines;
    this.#pending = 0;
    const text = logicalLine.text.trim();
    if (text === "" || text.startsWith("!")) return;
    if (text.startsWith("[")) {
      this.#openStanza(text);
      return;
    }
    const colon = text.indexOf(":");
    const tag = text.slice(0, Math.max(0, colon)).trimEnd();
    if (!/^[A-Za-z][\w-]{0,127}$/.test(tag)) throw this.#problem('expected "tag: value" or a stanza header');
    const value = text.slice(colon + 1).trim();
    if (tag === "id" && this.#stanza !== undefined) {
      if (this.#id !== undefined) throw this.#problem(`stanza [${this.#stanza}] has two ids`);
      const id = this.#attempt(() => this.#statements.openStanza(this.#stanza ?? "", value));
      if (id === "") throw this.#problem("empty id");
      this.#id = id;
      return;
    }
    if (this.#stanza !== undefined && this.#id === undefined) {
      throw this.#problem(`stanza [${this.#stanza}] does not begin with an id`);
    }
    this.#attempt(() => this.#statements.clause(this.#id, tag, value));
  }

  #openStanza(text: string): void {
    this.#closeStanza();
    const end = text.indexOf("]");
    const rest = end < 0 ? "" : text.slice(end + 1).trim();
    if (end < 0 || (rest !== "" && !rest.startsWith("!"))) throw this.#problem("invalid stanza header");
    const name = text.slice(1, end);
    if (!STANZAS.has(name)) {
      throw this.#problem(`unknown stanza [${name.slice(0, 40)}]; expected [Term], [Typedef] or [Instance]`);
    }
    this.#stanza = name;
    this.#id = undefined;
    this.statements += 1;
  }

  #closeStanza(): void {
    if (this.#stanza !== undefined && this.#id === undefined) throw this.#problem(`stanza [${this.#stanza}] has no id`);
  }

  #attempt<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw error instanceof SyntaxProblem ? this.#problem(error.message) : error;
    }
  }

  #problem(message: string): SyntaxProblem {
    return new SyntaxProblem(message, this.#line);
  }
}
