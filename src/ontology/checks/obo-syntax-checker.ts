/**
 * Checks the lines of an OBO file: a header of tags, then stanzas, each with an id. No maintained parser exists for
 * Node, and this is enough to see whether a file is complete.
 */
export class OboSyntaxChecker {
  #rest = "";
  #line = 0;
  #stanza: string | undefined;
  #hasId = true;
  /** The number of stanzas so far. */
  stanzas = 0;

  /** Throws an Error that names the line. */
  write(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > LINE_MAX) throw this.#problem(`line longer than ${LINE_MAX} characters`);
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
      if (!/^\[[A-Za-z]+\]\s*(?:!.*)?$/.test(line)) throw this.#problem("unclosed stanza header");
      this.#stanza = line.trim();
      this.#hasId = false;
      this.stanzas += 1;
      return;
    }
    const tag = /^\s*([A-Za-z0-9_:.-]+):(?:\s|$)/.exec(line)?.[1];
    if (tag === undefined) throw this.#problem('expected "tag: value" or a stanza header');
    if (tag === "id") this.#hasId = true;
  }

  #close(): void {
    if (!this.#hasId) throw this.#problem(`stanza ${this.#stanza} has no id`);
  }

  #problem(what: string): Error {
    return new Error(`line ${this.#line}: ${what}`);
  }
}

/** The longest lines of real files, logical definitions, have some thousand characters. */
const LINE_MAX = 4_000_000;
