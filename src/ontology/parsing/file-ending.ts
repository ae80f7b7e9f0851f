import type { OntologyFileFormat } from "../format.ts";

/** How many bytes of the end `endingProblem` reads. */
export const ENDING_BYTES = 65_536;

/**
 * Why a file with this end is not complete; undefined if it may be complete. For checks that do not parse the file to its
 * end: a server may truncate a file and announce the shorter length.
 */
export function endingProblem(format: OntologyFileFormat, tail: string): string | undefined {
  const expected = ENDINGS[format];
  if (expected === undefined) return undefined;
  const texts = possibleEndings(format, tail);
  if (texts.length === 0 || texts.some(text => expected.marks.some(mark => text.endsWith(mark)))) return undefined;
  return `file is incomplete: it ends without ${expected.name}`;
}

const MARKUP = { name: "a closing tag", marks: [">"] };
const BRACKET = { name: "a closing bracket", marks: ["}", "]"] };
const STATEMENT = { name: 'the final "." of a statement', marks: [".", "}"] };

/** OBO and Manchester syntax have no closing mark. */
const ENDINGS: Readonly<
  Partial<Record<OntologyFileFormat, { readonly name: string; readonly marks: readonly string[] }>>
> = {
  "rdf-xml": MARKUP,
  "owl-xml": MARKUP,
  obographs: BRACKET,
  "json-ld": BRACKET,
  turtle: STATEMENT,
  trig: STATEMENT,
  "n-triples": STATEMENT,
  "n-quads": STATEMENT,
  functional: { name: "a closing parenthesis", marks: [")"] },
};

/** What the end may be without comments. None if the tail has nothing but comments. */
function possibleEndings(format: OntologyFileFormat, tail: string): readonly string[] {
  // JSON has no comments.
  if (format === "obographs" || format === "json-ld") return [tail.trimEnd()];
  if (format === "rdf-xml" || format === "owl-xml")
    return [withoutXmlComments(tail)].filter(text => text !== undefined);
  return endingsOfLastLine(tail);
}

/** Undefined if the tail is inside a comment that began before it. */
function withoutXmlComments(tail: string): string | undefined {
  let text = tail.trimEnd();
  while (text.endsWith("-->")) {
    const start = text.lastIndexOf("<!--");
    if (start < 0) return undefined;
    text = text.slice(0, start).trimEnd();
  }
  return text;
}

/**
 * The last line that is not blank and not a comment, and its parts before each " #": inside a line only that begins a
 * comment, because `#` can be part of an IRI. It can also be part of a literal, so that the whole line may be the end.
 */
function endingsOfLastLine(tail: string): readonly string[] {
  const lines = tail.split("\n");
  while (lines.length > 0) {
    const line = (lines.pop() ?? "").trim();
    if (line === "" || line.startsWith("#")) continue;
    const comments = [...line.matchAll(/[ \t]#/g)].slice(0, COMMENTS_MAX);
    return [line, ...comments.map(({ index }) => line.slice(0, index).trimEnd())];
  }
  return [];
}

/** Bounds the work for a line of nothing but number signs. */
const COMMENTS_MAX = 100;
