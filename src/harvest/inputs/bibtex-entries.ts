/** The entries of a BibTeX file, one at a time. */
import { latexIdentifier, latexText } from "./latex-text.ts";
import { isIdColumn } from "./record-columns.ts";

export interface BibtexEntry {
  /** The line of its `@`, from 1. */
  readonly line: number;
  /** Fields by their names in lower case, as plain text. */
  readonly fields: Readonly<Record<string, string>>;
}

export interface BibtexProblem {
  readonly line: number;
  readonly message: string;
}

/** Not works: `@string{…}`, `@comment{…}`, `@preamble{…}`. */
const OTHER_KINDS: ReadonlySet<string> = new Set(["string", "comment", "preamble"]);
const START = /@([a-z]{1,30})\s{0,20}[{(]/i;

/** Yields a problem for an entry that exceeds `charsMax` or does not end, and continues at the next `@`. */
export async function* bibtexEntries(
  texts: AsyncIterable<string>,
  charsMax: number,
): AsyncGenerator<BibtexEntry | BibtexProblem> {
  let rest = "";
  let line = 1;
  let droppedChars = 0;
  let tryAtChars = 0;
  const drop = (chars: number) => {
    line += rest.slice(0, chars).split("\n").length - 1;
    rest = rest.slice(chars);
    droppedChars += chars;
  };
  const unclosed = (isEnd: boolean) =>
    isEnd ? "entry without a closing brace" : `entry has no closing brace within ${charsMax} characters`;
  function* complete(isEnd: boolean): Generator<BibtexEntry | BibtexProblem> {
    let closings: { readonly ends: Int32Array; readonly droppedChars: number } | undefined;
    // After an entry without an end, the ends of all brackets are computed once: a search for each takes quadratic time.
    const endOf = (open: number) => {
      if (closings === undefined) {
        const end = closingOf(rest, open);
        if (end !== undefined && end <= charsMax) return end;
        closings = { ends: closingsIn(rest), droppedChars };
      }
      const shift = droppedChars - closings.droppedChars;
      const end = closings.ends[open + shift] ?? 0;
      return end === 0 ? undefined : end - shift;
    };
    for (;;) {
      const start = START.exec(rest);
      if (start === null) {
        // The start of an entry may be divided between two chunks.
        drop(isEnd ? rest.length : Math.max(0, rest.length - 60));
        return;
      }
      drop(start.index);
      const open = start[0].length - 1;
      const end = endOf(open);
      if (end === undefined && !isEnd && rest.length <= charsMax) {
        // The next try waits for twice as much text: an entry in many chunks is not read from its start for each chunk.
        tryAtChars = 2 * rest.length;
        return;
      }
      if (end === undefined || end > charsMax) {
        yield { line, message: end === undefined ? unclosed(isEnd) : `entry has more than ${charsMax} characters` };
        drop(1);
        continue;
      }
      const kind = (start[1] ?? "").toLowerCase();
      if (!OTHER_KINDS.has(kind)) yield { line, fields: fieldsOf(rest.slice(open + 1, end)) };
      drop(end + 1);
    }
  }
  for await (const text of texts) {
    rest += text;
    if (rest.length < tryAtChars) continue;
    tryAtChars = 0;
    yield* complete(false);
  }
  yield* complete(true);
}

/** The index of the bracket that closes the one at `open`; undefined if the text has none. */
function closingOf(text: string, open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const character = text[at];
    if (character === "\\") at += 1;
    else if (character === "{" || (character === "(" && at === open)) depth += 1;
    else if (character === "}" || (character === ")" && depth === 1 && text[open] === "(")) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}

/** What `closingOf` returns for each bracket of the text, by its index; 0 for none. */
function closingsIn(text: string): Int32Array {
  const ends = new Int32Array(text.length);
  const opened: number[] = [];
  const close = (bracket: string, at: number) => {
    const last = opened.at(-1);
    if (last === undefined || text[last] !== bracket) return false;
    ends[last] = at;
    opened.pop();
    return true;
  };
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === "\\") at += 1;
    else if (character === "{" || character === "(") opened.push(at);
    else if (character === ")" || character === "}") {
      // Parentheses within an entry do not count, so this bracket ends every entry that a parenthesis has opened.
      while (close("(", at));
      if (character === "}") close("{", at);
    }
  }
  return ends;
}

/** The fields after the key: `key, name = {value}, name = "value", year = 2020`. */
function fieldsOf(body: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  let at = body.indexOf(",") + 1;
  while (at > 0 && at < body.length) {
    const equals = body.indexOf("=", at);
    if (equals === -1) break;
    const name = body
      .slice(at, equals)
      .replace(/[,\s]+/g, "")
      .toLowerCase();
    const { value, end } = valueAt(body, equals + 1);
    if (/^[a-z][a-z0-9_-]{0,40}$/.test(name))
      fields[name] ??= isIdColumn(name) ? latexIdentifier(value) : latexText(value);
    at = end;
  }
  return fields;
}

/** A value may be joined from several: `"A" # " B"`. */
function valueAt(body: string, from: number): { readonly value: string; readonly end: number } {
  let { value, end } = partAt(body, from);
  for (let next = skipSpace(body, end); body[next] === "#"; next = skipSpace(body, end)) {
    const part = partAt(body, next + 1);
    value += part.value;
    end = part.end;
  }
  return { value, end };
}

function partAt(body: string, from: number): { readonly value: string; readonly end: number } {
  const start = skipSpace(body, from);
  if (body[start] === "{") {
    const end = closingOf(body, start) ?? body.length;
    return { value: body.slice(start + 1, end), end: end + 1 };
  }
  if (body[start] === '"') {
    let depth = 0;
    let end = start + 1;
    for (; end < body.length && (body[end] !== '"' || depth > 0); end += 1) {
      if (body[end] === "{") depth += 1;
      if (body[end] === "}") depth -= 1;
    }
    return { value: body.slice(start + 1, end), end: end + 1 };
  }
  let end = start;
  while (end < body.length && body[end] !== "," && body[end] !== "#") end += 1;
  return { value: body.slice(start, end).trimEnd(), end };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\r\n".includes(text[at] ?? "x")) at += 1;
  return at;
}
