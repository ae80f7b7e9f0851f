/**
 * Checks OWL functional syntax for completeness only: every parenthesis, string and IRI is closed, and there is an
 * `Ontology(...)`.
 */
export class FunctionalSyntaxChecker {
  #depth = 0;
  #state: "plain" | "string" | "escape" | "iri" | "comment" = "plain";
  #line = 1;
  /** The last characters at depth 0: the keyword before the next parenthesis. */
  #word = "";
  #isOntology = false;
  /** The number of parentheses opened at depth 1 so far, which is the number of axioms. */
  axioms = 0;

  /** Throws an Error that names the line. */
  write(text: string): void {
    for (const letter of text) {
      if (letter === "\n") this.#line += 1;
      this.#step(letter);
    }
  }

  end(): void {
    if (this.#state === "string" || this.#state === "escape") throw this.#problem("unclosed string");
    if (this.#state === "iri") throw this.#problem("unclosed IRI");
    if (this.#depth > 0) throw this.#problem(`${this.#depth} unclosed parentheses`);
    if (!this.#isOntology) throw this.#problem("no Ontology(...) found");
  }

  #step(letter: string): void {
    switch (this.#state) {
      case "string":
        if (letter === "\\") this.#state = "escape";
        else if (letter === '"') this.#state = "plain";
        return;
      case "escape":
        this.#state = "string";
        return;
      case "iri":
        if (letter === ">") this.#state = "plain";
        else if (letter === "\n") throw this.#problem("unclosed IRI");
        return;
      case "comment":
        if (letter === "\n") this.#state = "plain";
        return;
      default:
        this.#plain(letter);
    }
  }

  #plain(letter: string): void {
    if (letter === '"') this.#state = "string";
    else if (letter === "<") this.#state = "iri";
    else if (letter === "#") this.#state = "comment";
    else if (letter === "(") {
      this.#depth += 1;
      if (this.#depth === 1 && this.#word.trim() === "Ontology") this.#isOntology = true;
      if (this.#depth === 2) this.axioms += 1;
      if (this.#depth > DEPTH_MAX) throw this.#problem(`parentheses nested deeper than ${DEPTH_MAX}`);
    } else if (letter === ")") {
      this.#depth -= 1;
      if (this.#depth < 0) throw this.#problem("unexpected closing parenthesis");
      this.#word = "";
    } else if (this.#depth === 0) this.#word = `${this.#word}${letter}`.slice(-WORD_MAX);
  }

  #problem(what: string): Error {
    return new Error(`line ${this.#line}: ${what}`);
  }
}

const DEPTH_MAX = 10_000;
const WORD_MAX = 64;
