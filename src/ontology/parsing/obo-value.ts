import { SyntaxProblem } from "./syntax-problem.ts";

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", W: " " };

/** A value of a clause in two parts. */
interface OboValue {
  /** Without the trailing comment (`! text`) and the qualifiers. */
  readonly text: string;
  /** What the braces of the qualifiers (`{...}`) contain; empty if there are none. */
  readonly qualifiers: string;
}

/** A `!` or `{` in quotation marks or after a backslash begins neither a comment nor qualifiers. */
export function splitValue(value: string): OboValue {
  let isQuoted = false;
  let end = value.length;
  let brace = -1;
  for (let at = 0; at < value.length; at += 1) {
    const letter = value[at];
    if (letter === "\\") at += 1;
    else if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && letter === "{" && isSpace(value, at - 1)) brace = at;
    else if (!isQuoted && letter === "!" && isSpace(value, at - 1)) {
      end = at;
      break;
    }
  }
  const text = value.slice(0, end).trimEnd();
  if (brace < 0 || !text.endsWith("}")) return { text, qualifiers: "" };
  return { text: text.slice(0, brace).trimEnd(), qualifiers: text.slice(brace + 1, -1) };
}

/** A value without its trailing comment and its qualifiers. */
export function plainValue(value: string): string {
  return splitValue(value).text;
}

/** The names in `name="text", other=text`. */
export function qualifierNames(qualifiers: string): readonly string[] {
  const names: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < qualifiers.length; at += 1) {
    const letter = qualifiers[at];
    if (letter === "\\") at += 1;
    else if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (letter === "=" || letter === ",")) {
      if (letter === "=") names.push(qualifiers.slice(start, at).trim());
      start = at + 1;
    }
  }
  return names;
}

export function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter) : text;
}

/** The quoted text at the beginning of a value, and what follows it. @throws SyntaxProblem if it is not closed. */
export function quotedText(tag: string, value: string): { readonly text: string; readonly rest: string } {
  if (!value.startsWith('"')) throw new SyntaxProblem(`${tag} without a quoted text`);
  for (let at = 1; at < value.length; at += 1) {
    const letter = value[at];
    if (letter === "\\") at += 1;
    else if (letter === '"') return { text: unescaped(value.slice(1, at)), rest: value.slice(at + 1).trim() };
  }
  throw new SyntaxProblem(`${tag} with an unclosed quotation mark`);
}

/** Words of a value, in which a quoted text is one word. */
export function wordsOf(value: string): readonly string[] {
  const words: string[] = [];
  let word = "";
  let isQuoted = false;
  for (let at = 0; at < value.length; at += 1) {
    const letter = value.charAt(at);
    if (letter === "\\") {
      at += 1;
      word += letter + value.charAt(at);
    } else if (letter === '"') {
      isQuoted = !isQuoted;
      word += letter;
    } else if (!isQuoted && (letter === " " || letter === "\t")) {
      if (word !== "") words.push(word);
      word = "";
    } else word += letter;
  }
  if (word !== "") words.push(word);
  return words;
}

function isSpace(text: string, at: number): boolean {
  return at < 0 || text[at] === " " || text[at] === "\t";
}

/** The text up to the first space that has no backslash before it, with its escapes. */
export function firstWord(text: string): string {
  let at = 0;
  while (at < text.length && !isSpace(text, at)) at += text[at] === "\\" ? 2 : 1;
  return text.slice(0, at);
}
