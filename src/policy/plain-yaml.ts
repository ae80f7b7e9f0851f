/**
 * Reads the part of YAML that nearly all policy files use: block maps, lists of values, and maps, lists, quoted and plain
 * values that end in their line. It is many times as fast as the complete parser, which also takes 30 ms to load. It gives
 * up on other YAML and on errors; the complete parser then reads the file and reports the problems.
 */
import { type Assignment, canonicalKey, FORBIDDEN_KEYS, MAX_DEPTH, MAX_NODES } from "./layer.ts";
import { noteAfter } from "./line-note.ts";
import { plainScalar, UNCLEAR } from "./plain-scalar.ts";

type Path = readonly string[];

/** Tabs, other line ends than `\n`, and characters that YAML does not allow. */
const UNUSUAL = /[^\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
/** Plain text without characters that have a meaning in YAML. A colon inside must be followed by more of the text. */
const PLAIN = /[A-Za-z0-9_/](?:[A-Za-z0-9_/.+;=~()-]|:(?=[A-Za-z0-9_/])| (?=[A-Za-z0-9_/(]))*/y;
const DOUBLE_QUOTED = /"([^"\\\n]*)"/y;
const SINGLE_QUOTED = /'([^'\n]*)'(?!')/y;

/** The values of a policy file in the order of the file, or undefined if the complete parser has to read it. */
export function readPlainYaml(text: string, file: string): readonly Assignment[] | undefined {
  if (UNUSUAL.test(text)) return undefined;
  const reader = new PlainReader(text, file);
  try {
    reader.read();
  } catch (error) {
    if (error === GIVE_UP) return undefined;
    throw error;
  }
  return reader.assignments;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
const DOUBLE_QUOTE = 0x22;
const HASH = 0x23;
const SINGLE_QUOTE = 0x27;
const COMMA = 0x2c;
const DASH = 0x2d;
const COLON = 0x3a;
const BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

const GIVE_UP = Symbol("not plain");

function giveUp(): never {
  throw GIVE_UP;
}

class PlainReader {
  readonly assignments: Assignment[] = [];
  readonly #text: string;
  readonly #file: string;
  #at = 0;
  #line = 1;
  #nodes = 1;
  /** `limits.yaml:12` of the current line. */
  #where = "";

  constructor(text: string, file: string) {
    this.#text = text;
    this.#file = file;
  }

  read(): void {
    const indent = this.#nextLine();
    if (indent === 0) this.#blockMap(indent, [], undefined);
    if (indent > 0 || this.#at < this.#text.length) giveUp();
  }

  /** Goes to the next line with content, and returns its indent; -1 at the end of the file. */
  #nextLine(): number {
    const text = this.#text;
    for (;;) {
      const start = this.#at;
      while (text.charCodeAt(this.#at) === SPACE) this.#at += 1;
      const code = text.charCodeAt(this.#at);
      if (code !== NEWLINE && code !== HASH) {
        this.#where = `${this.#file}:${this.#line}`;
        return this.#at < text.length ? this.#at - start : -1;
      }
      this.#skipLine();
    }
  }

  #skipLine(): void {
    const end = this.#text.indexOf("\n", this.#at);
    this.#at = end < 0 ? this.#text.length : end + 1;
    this.#line += 1;
  }

  /** Reads entries from the current line on, and returns the indent of the line after them, which is smaller. */
  #blockMap(indent: number, path: Path, outerNote: string | undefined): number {
    const seen = new Set<string>();
    let next = indent;
    while (next === indent) {
      const below = this.#key(path, seen);
      this.#skipSpaces();
      if (this.#isLineEnd()) {
        const note = (path.length > 0 ? noteAfter(this.#text, this.#at) : undefined) ?? outerNote;
        next = this.#block(indent, below, note);
      } else {
        this.#value(below, outerNote);
        this.#skipLine();
        next = this.#nextLine();
      }
    }
    return next > indent ? giveUp() : next;
  }

  /** A map or list below a key, from the next line on. */
  #block(indent: number, path: Path, note: string | undefined): number {
    const keyWhere = this.#where;
    this.#skipLine();
    const next = this.#nextLine();
    const isList = this.#text.charCodeAt(this.#at) === DASH && next >= indent;
    if (!isList && next <= indent) giveUp();
    this.#count(path.length);
    if (isList) return this.#blockList(next, path, note);
    this.assignments.push({ path, value: {}, where: keyWhere, note });
    return this.#blockMap(next, path, note);
  }

  #blockList(indent: number, path: Path, note: string | undefined): number {
    const value: unknown[] = [];
    this.assignments.push({ path, value, where: this.#where, note });
    let next = indent;
    while (next === indent && this.#text.charCodeAt(this.#at) === DASH) {
      this.#at += 1;
      if (this.#text.charCodeAt(this.#at) !== SPACE) giveUp();
      this.#skipSpaces();
      value.push(this.#item(path, 1));
      this.#endLine();
      this.#skipLine();
      next = this.#nextLine();
    }
    return next;
  }

  /** Reads a key and its colon, and returns the path of the key. */
  #key(path: Path, seen: Set<string>): Path {
    const name = this.#scalar();
    if (typeof name !== "string" || name === "" || FORBIDDEN_KEYS.has(name)) giveUp();
    this.#skipSpaces();
    if (this.#text.charCodeAt(this.#at) !== COLON) giveUp();
    this.#at += 1;
    const after = this.#text.charCodeAt(this.#at);
    if (after !== SPACE && after !== NEWLINE && this.#at < this.#text.length) giveUp();
    const canonical = canonicalKey(path, name);
    if (seen.has(canonical)) giveUp();
    seen.add(canonical);
    return [...path, canonical];
  }

  /** A value that ends in its line, and its comment. */
  #value(path: Path, outerNote: string | undefined): void {
    const first = this.assignments.length;
    this.#inlineValue(path);
    const note = noteAfter(this.#text, this.#at) ?? outerNote;
    this.#endLine();
    if (note === undefined) return;
    for (let index = first; index < this.assignments.length; index += 1)
      this.assignments[index] = { ...(this.assignments[index] as Assignment), note };
  }

  #inlineValue(path: Path): void {
    if (this.#text.charCodeAt(this.#at) !== BRACE) {
      const value = this.#item(path, 0);
      this.assignments.push({ path, value, where: this.#where, note: undefined });
      return;
    }
    this.#count(path.length);
    this.assignments.push({ path, value: {}, where: this.#where, note: undefined });
    const seen = new Set<string>();
    this.#inside(CLOSING_BRACE, () => {
      const below = this.#key(path, seen);
      this.#skipSpaces();
      this.#inlineValue(below);
    });
  }

  /** A value without a path of its own. */
  #item(path: Path, depth: number): unknown {
    this.#count(path.length + depth);
    if (this.#text.charCodeAt(this.#at) !== BRACKET) return this.#scalar();
    const items: unknown[] = [];
    this.#inside(CLOSING_BRACKET, () => items.push(this.#item(path, depth + 1)));
    return items;
  }

  /** The parts of a map or list in one line, from its opening character to behind its closing one. */
  #inside(closing: number, readPart: () => void): void {
    this.#at += 1;
    this.#skipSpaces();
    if (this.#text.charCodeAt(this.#at) === closing) {
      this.#at += 1;
      return;
    }
    for (;;) {
      readPart();
      this.#skipSpaces();
      const code = this.#text.charCodeAt(this.#at);
      this.#at += 1;
      if (code === closing) return;
      if (code !== COMMA) giveUp();
      this.#skipSpaces();
    }
  }

  #scalar(): unknown {
    const code = this.#text.charCodeAt(this.#at);
    if (code === DOUBLE_QUOTE) return this.#match(DOUBLE_QUOTED).slice(1, -1);
    if (code === SINGLE_QUOTE) return this.#match(SINGLE_QUOTED).slice(1, -1);
    const value = plainScalar(this.#match(PLAIN));
    return value === UNCLEAR ? giveUp() : value;
  }

  #match(expression: RegExp): string {
    expression.lastIndex = this.#at;
    if (!expression.test(this.#text)) giveUp();
    const found = this.#text.slice(this.#at, expression.lastIndex);
    this.#at = expression.lastIndex;
    return found;
  }

  #skipSpaces(): void {
    while (this.#text.charCodeAt(this.#at) === SPACE) this.#at += 1;
  }

  /** Gives up if anything but a comment follows in this line. A comment needs a space before it. */
  #endLine(): void {
    const end = this.#at;
    this.#skipSpaces();
    if (!this.#isLineEnd() || (this.#at === end && this.#text.charCodeAt(end) === HASH)) giveUp();
  }

  #isLineEnd(): boolean {
    const code = this.#text.charCodeAt(this.#at);
    return code === NEWLINE || code === HASH || this.#at >= this.#text.length;
  }

  #count(depth: number): void {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES || depth > MAX_DEPTH) giveUp();
  }
}
