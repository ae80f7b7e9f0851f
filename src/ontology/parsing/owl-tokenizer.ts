import { checkPending } from "./limits.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/**
 * `iri`: `<...>`. `string`: a quoted text without its quotation marks. `language`: the tag after a text. `word`: a
 * keyword, name or number. `mark`: a bracket, a comma, `=`, `^^` or a comparison.
 */
export type OwlTokenType = "iri" | "string" | "language" | "word" | "mark";

export type OnOwlToken = (type: OwlTokenType, value: string) => void;

const SPACE = new Set([" ", "\t", "\n", "\r", "\f"].map(letter => letter.charCodeAt(0)));
const MARKS = new Set(["(", ")", "[", "]", "{", "}", ",", "="].map(letter => letter.charCodeAt(0)));
/** The characters with which a number or a quoted text begins. An IRI begins with a letter. */
const NUMBER_STARTS = new Set([...'0123456789+-"'].map(letter => letter.charCodeAt(0)));
/** Characters that end a word. */
const ENDS = new Set([...SPACE, ...MARKS, ...['"', "<", ">", "^", "@"].map(letter => letter.charCodeAt(0))]);

/**
 * The tokens of functional syntax and of Manchester syntax, which are the same. Each character is read once, except in a
 * token that spans chunks: the token is read again each time the held text has doubled.
 */
export class OwlTokenizer {
  readonly #onToken: OnOwlToken;
  #text = "";
  #at = 0;
  #line = 1;
  /** An incomplete token is read again when the held text has this length. */
  #retryLength = 0;
  #isInComment = false;
  /** Whether more text may follow. */
  #hasMore = true;

  constructor(onToken: OnOwlToken) {
    this.#onToken = onToken;
  }

  get line(): number {
    return this.#line;
  }

  write(text: string): void {
    this.#text = this.#text.slice(this.#at) + text;
    this.#at = 0;
    checkPending(this.#text.length, this.#line);
    if (this.#text.length < this.#retryLength) return;
    this.#scan();
    this.#retryLength = 2 * (this.#text.length - this.#at);
  }

  end(): void {
    this.#hasMore = false;
    this.#scan();
    if (this.#at < this.#text.length) throw this.#problem("unexpected end of the file");
  }

  #problem(message: string): SyntaxProblem {
    return new SyntaxProblem(message, this.#line);
  }

  #scan(): void {
    while (this.#at < this.#text.length) {
      if (this.#isInComment && !this.#skipComment()) return;
      const code = this.#text.charCodeAt(this.#at);
      if (SPACE.has(code)) {
        if (code === 10) this.#line += 1;
        this.#at += 1;
      } else if (code === HASH) this.#isInComment = true;
      else if (!this.#readToken(code)) return;
    }
  }

  #skipComment(): boolean {
    const end = this.#text.indexOf("\n", this.#at);
    if (end < 0) {
      this.#at = this.#text.length;
      return false;
    }
    this.#at = end;
    this.#isInComment = false;
    return true;
  }

  /** Returns false if the token is not complete yet. */
  #readToken(code: number): boolean {
    if (MARKS.has(code)) return this.#emit("mark", this.#at + 1, this.#text.charAt(this.#at));
    if (code === QUOTE) return this.#readString();
    if (code === LESS) return this.#readIri();
    // Every other token needs the character after it.
    if (code === GREATER) {
      if (this.#hasMore && this.#at + 1 >= this.#text.length) return false;
      const mark = this.#text.startsWith(">=", this.#at) ? ">=" : ">";
      return this.#emit("mark", this.#at + mark.length, mark);
    }
    if (code === CARET) {
      if (this.#text.startsWith("^^", this.#at)) return this.#emit("mark", this.#at + 2, "^^");
      if (this.#hasMore && this.#at + 1 >= this.#text.length) return false;
      throw this.#problem('unexpected "^"');
    }
    return this.#readWord(code === AT);
  }

  #readString(): boolean {
    let lines = 0;
    let hasEscape = false;
    for (let at = this.#at + 1; at < this.#text.length; at += 1) {
      const code = this.#text.charCodeAt(at);
      if (code === BACKSLASH) {
        hasEscape = true;
        at += 1;
      } else if (code === 10) lines += 1;
      else if (code === QUOTE) {
        const text = this.#text.slice(this.#at + 1, at);
        this.#emit("string", at + 1, hasEscape ? text.replace(/\\(["\\])/g, "$1") : text);
        this.#line += lines;
        return true;
      }
    }
    if (this.#hasMore) return false;
    throw this.#problem("unclosed quotation mark");
  }

  #readIri(): boolean {
    const next = this.#text.charCodeAt(this.#at + 1);
    if (this.#hasMore && Number.isNaN(next)) return false;
    // A comparison in a facet, such as integer[<= 5] or integer[<5].
    if (next === EQUALS) return this.#emit("mark", this.#at + 2, "<=");
    if (SPACE.has(next) || NUMBER_STARTS.has(next)) return this.#emit("mark", this.#at + 1, "<");
    for (let at = this.#at + 1; at < this.#text.length; at += 1) {
      const code = this.#text.charCodeAt(at);
      if (code === GREATER) return this.#emit("iri", at + 1, this.#text.slice(this.#at + 1, at));
      if (code <= 32 || code === QUOTE || code === LESS) throw this.#problem("invalid or unclosed IRI");
    }
    if (this.#hasMore) return false;
    throw this.#problem("unclosed IRI");
  }

  #readWord(isLanguage: boolean): boolean {
    let at = this.#at + 1;
    while (at < this.#text.length && !ENDS.has(this.#text.charCodeAt(at))) at += 1;
    if (at >= this.#text.length && this.#hasMore) return false;
    const word = this.#text.slice(this.#at, at);
    if (!isLanguage) return this.#emit("word", at, word);
    if (!/^@[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,20}$/.test(word)) throw this.#problem("invalid language tag");
    return this.#emit("language", at, word.slice(1));
  }

  #emit(type: OwlTokenType, end: number, value: string): true {
    this.#at = end;
    this.#onToken(type, value);
    return true;
  }
}

const HASH = 35;
const QUOTE = 34;
const LESS = 60;
const EQUALS = 61;
const GREATER = 62;
const AT = 64;
const BACKSLASH = 92;
const CARET = 94;
