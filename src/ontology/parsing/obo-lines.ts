/** One logical line: a line that ends with a backslash continues on the next. */
export interface OboLine {
  readonly text: string;
  /** How many lines of the file it has. */
  readonly lines: number;
}

/** Splits chunks of text into lines. A line that spans many chunks is joined once, when it ends. */
export class OboLines {
  #parts: string[] = [];
  /** Lines that ended with a backslash. */
  #continued: string[] = [];

  *split(text: string): Generator<OboLine> {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#parts.push(text.slice(start, end));
      start = end + 1;
      const line = this.#take();
      if (line !== undefined) yield line;
    }
    if (start < text.length) this.#parts.push(text.slice(start));
  }

  *end(): Generator<OboLine> {
    if (this.#parts.length === 0 && this.#continued.length === 0) return;
    const line = this.#take() ?? this.#join("");
    yield line;
  }

  #take(): OboLine | undefined {
    const joined = this.#parts.join("");
    this.#parts = [];
    const text = joined.endsWith("\r") ? joined.slice(0, -1) : joined;
    if (endsWithEscape(text)) {
      this.#continued.push(text.slice(0, -1));
      return undefined;
    }
    return this.#join(text);
  }

  #join(text: string): OboLine {
    const lines = this.#continued.length + 1;
    const line = { text: lines === 1 ? text : this.#continued.join("") + text, lines };
    this.#continued = [];
    return line;
  }
}

/** An even number of backslashes at the end are escaped backslashes. */
function endsWithEscape(text: string): boolean {
  let count = 0;
  while (text.charCodeAt(text.length - 1 - count) === 92) count += 1;
  return count % 2 === 1;
}
