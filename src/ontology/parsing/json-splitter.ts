import { checkDepth, checkPending } from "./limits.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

const LIST_ITEM = "*";

/** In paths, `*` stands for an item of a list. A member of an object may have the same name. */
export interface JsonSplitterHandler {
  /** Whether the values inside the container at this path are passed one by one. */
  descends(path: readonly string[], container: "object" | "list"): boolean;
  /** A complete value, with so many levels of brackets. `path` is valid only during the call. */
  value(path: readonly string[], value: unknown, levels: number): void;
  /** The end of a container whose values were passed one by one. `path` is valid only during the call. */
  end?(path: readonly string[]): void;
}

interface Container {
  readonly isObject: boolean;
  /** What must come next. `first`: the first key or value, or the end. */
  next: "first" | "key" | "colon" | "value" | "comma";
}

/**
 * Splits a JSON text into values, each parsed on its own, so that a large list is never held in memory. Each character is
 * read once.
 */
export class JsonSplitter {
  readonly #handler: JsonSplitterHandler;
  readonly #containers: Container[] = [];
  readonly #path: string[] = [];
  /** The pieces of the value or key that is being read; undefined between values. */
  #parts: string[] | undefined;
  #pendingLength = 0;
  /** How many brackets are open inside the value that is being read. */
  #depth = 0;
  /** The largest depth inside the value that is being read. */
  #levels = 0;
  #isInString = false;
  #isAfterBackslash = false;
  #isEnded = false;
  #line = 1;

  constructor(handler: JsonSplitterHandler) {
    this.#handler = handler;
  }

  get line(): number {
    return this.#line;
  }

  write(text: string): void {
    let at = 0;
    while (at < text.length) at = this.#parts === undefined ? this.#readStructure(text, at) : this.#readValue(text, at);
    checkPending(this.#pendingLength, this.#line);
  }

  end(): void {
    if (this.#parts !== undefined && this.#depth === 0 && !this.#isInString) this.#finish();
    if (!this.#isEnded) throw this.#problem("unexpected end of JSON");
  }

  #problem(message: string): SyntaxProblem {
    return new SyntaxProblem(message, this.#line);
  }

  /** Reads one character between values. */
  #readStructure(text: string, at: number): number {
    const code = text.charCodeAt(at);
    if (code === NEWLINE) this.#line += 1;
    if (code === NEWLINE || code === SPACE || code === TAB || code === RETURN) return at + 1;
    const top = this.#containers.at(-1);
    if (top === undefined) {
      if (this.#isEnded) throw this.#problem("text after the end of JSON");
      return this.#startValue(code, at);
    }
    const isEnd = code === (top.isObject ? CLOSE_BRACE : CLOSE_BRACKET);
    if (isEnd && (top.next === "first" || top.next === "comma")) {
      this.#containers.pop();
      this.#handler.end?.(this.#path);
      this.#endValue();
      return at + 1;
    }
    if (top.next === "comma" && code === COMMA) {
      top.next = top.isObject ? "key" : "value";
      return at + 1;
    }
    if (top.next === "colon" && code === COLON) {
      top.next = "value";
      return at + 1;
    }
    if (top.isObject && (top.next === "first" || top.next === "key") && code === QUOTE) {
      top.next = "key";
      return this.#startReading(at);
    }
    if (top.next === "value" || (top.next === "first" && !top.isObject)) {
      if (!top.isObject) this.#path.push(LIST_ITEM);
      top.next = "value";
      return this.#startValue(code, at);
    }
    throw this.#problem(`unexpected ${JSON.stringify(text.charAt(at))} in JSON`);
  }

  #startValue(code: number, at: number): number {
    const isObject = code === OPEN_BRACE;
    if ((isObject || code === OPEN_BRACKET) && this.#handler.descends(this.#path, isObject ? "object" : "list")) {
      this.#containers.push({ isObject, next: "first" });
      return at + 1;
    }
    return this.#startReading(at);
  }

  /** From this character on, the text is kept until the key or value is complete. */
  #startReading(at: number): number {
    this.#parts = [];
    this.#levels = 0;
    return at;
  }

  /** Reads a value up to its end or to the end of the chunk. */
  #readValue(text: string, start: number): number {
    for (let at = start; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.#line += 1;
      if (this.#isInString) {
        if (this.#isAfterBackslash) this.#isAfterBackslash = false;
        else if (code === BACKSLASH) this.#isAfterBackslash = true;
        else if (code === QUOTE) {
          this.#isInString = false;
          if (this.#depth === 0) return this.#complete(text, start, at + 1);
        }
      } else if (code === QUOTE) this.#isInString = true;
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        this.#depth += 1;
        this.#levels = Math.max(this.#levels, this.#depth);
        checkDepth(this.#depth, "values", this.#line);
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (this.#depth === 0) return this.#complete(text, start, at);
        this.#depth -= 1;
        if (this.#depth === 0) return this.#complete(text, start, at + 1);
      } else if (this.#depth === 0 && (code === COMMA || code <= SPACE)) {
        // `#readStructure` reads and counts this line break again.
        if (code === NEWLINE) this.#line -= 1;
        return this.#complete(text, start, at);
      }
    }
    this.#parts?.push(text.slice(start));
    this.#pendingLength += text.length - start;
    return text.length;
  }

  #complete(text: string, start: number, end: number): number {
    this.#parts?.push(text.slice(start, end));
    this.#finish();
    return end;
  }

  #finish(): void {
    const text = this.#parts?.join("") ?? "";
    this.#parts = undefined;
    this.#pendingLength = 0;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw this.#problem("invalid JSON");
    }
    const top = this.#containers.at(-1);
    if (top?.isObject && top.next === "key") {
      this.#path.push(String(value));
      top.next = "colon";
      return;
    }
    this.#handler.value(this.#path, value, this.#levels);
    this.#endValue();
  }

  #endValue(): void {
    const top = this.#containers.at(-1);
    if (top === undefined) {
      this.#isEnded = true;
      return;
    }
    this.#path.pop();
    top.next = "comma";
  }
}

const TAB = 9;
const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
