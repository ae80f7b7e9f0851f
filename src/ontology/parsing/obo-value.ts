import { SyntaxProblem } from "./syntax-problem.ts";

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", W: " " };

/**
 * A value without its trailing comment (`! text`) and qualifiers (`{...}`). A `!` or `{` in quotation marks or after a
 * backslash begins neither.
 */
export function plainValue(value: string): string {
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
  return brace >= 0 && text.endsWith("}") ? text.slice(0, brace).trimEnd() : text;
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
