/**
 * Whether text is of OWL's functional syntax, as far as brackets, strings and IRIs go: each is closed, and nothing but
 * prefixes and one ontology stands outside.
 */
export class FunctionalSyntaxChecker {
  #depth = 0;
  #state: "plain" | "string" | "escape" | "iri" | "comment" = "plain";
  #line = 1;
  /** The last letters outside of everything: what the next parenthesis belongs to. */
  #word = "";
  #isOntology = false;
  /** Axioms so far: whatever opens directly within the ontology. */
  axioms = 0;

  /** Throws an Error that names the line. */
  write(text: string): void {
    for (const letter of text) {
      if (letter === "\n") this.#line += 1;
      this.#step(letter);
    }
  }

  end(): void {
    if (this.#state === "string" || this.#state === "escape") throw this.#wrong("a string is not closed");
    if (this.#state === "iri") throw this.#wrong("an IRI is not closed");
    if (this.#depth > 0) throw this.#wrong(`${this.#depth} parentheses are not closed`);
    if (!this.#isOntology) throw this.#wrong("no ontology");
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
        else if (letter === "\n") throw this.#wrong("an IRI is not closed");
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
      if (this.#depth > DEPTH_MAX) throw this.#wrong(`more than ${DEPTH_MAX} parentheses within each other`);
    } else if (letter === ")") {
      this.#depth -= 1;
      if (this.#depth < 0) throw this.#wrong("a parenthesis is closed that was not opened");
      this.#word = "";
    } else if (this.#depth === 0) this.#word = `${this.#word}${letter}`.slice(-WORD_MAX);
  }

  #wrong(what: string): Error {
    return new Error(`line ${this.#line}: ${what}`);
  }
}

const DEPTH_MAX = 10_000;
const WORD_MAX = 64;
