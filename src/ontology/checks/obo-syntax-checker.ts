/**
 * Whether lines are an OBO file: a header of tags, then stanzas, each with an id. There is no parser of it for Node that
 * is kept, and to see whether a file is whole and sound no more is needed.
 */
export class OboSyntaxChecker {
  #rest = "";
  #line = 0;
  #stanza: string | undefined;
  #hasId = true;
  /** Stanzas so far. */
  stanzas = 0;

  /** Throws an Error that names the line. */
  write(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > LINE_MAX) throw this.#wrong(`a line of more than ${LINE_MAX} characters`);
    for (const line of lines) this.#read(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  end(): void {
    if (this.#rest !== "") this.#read(this.#rest);
    this.#close();
  }

  #read(line: string): void {
    this.#line += 1;
    if (line.trim() === "" || line.startsWith("!")) return;
    if (line.startsWith("[")) {
      this.#close();
      if (!/^\[[A-Za-z]+\]\s*(?:!.*)?$/.test(line)) throw this.#wrong("the head of a stanza that is not closed");
      this.#stanza = line.trim();
      this.#hasId = false;
      this.stanzas += 1;
      return;
    }
    const tag = /^\s*([A-Za-z0-9_:.-]+):(?:\s|$)/.exec(line)?.[1];
    if (tag === undefined) throw this.#wrong("neither a tag nor the head of a stanza");
    if (tag === "id") this.#hasId = true;
  }

  #close(): void {
    if (!this.#hasId) throw this.#wrong(`${this.#stanza} has no id`);
  }

  #wrong(what: string): Error {
    return new Error(`line ${this.#line}: ${what}`);
  }
}

/** The longest lines of real files are logical definitions of some thousand characters. */
const LINE_MAX = 4_000_000;
