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
  const text = format === "rdf-xml" || format === "owl-xml" ? withoutXmlComments(tail) : withoutLineComments(tail);
  if (text === undefined || expected.marks.some(mark => text.endsWith(mark))) return undefined;
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
 * The text up to the last line that is not blank and not a comment. Inside a line only " #" begins a comment: `#` can be
 * part of an IRI. Undefined if every line is a comment.
 */
function withoutLineComments(tail: string): string | undefined {
  const lines = tail.split("\n");
  while (lines.length > 0) {
    const line = (lines.pop() ?? "").trim();
    if (line === "" || line.startsWith("#")) continue;
    const comment = Math.max(line.lastIndexOf(" #"), line.lastIndexOf("\t#"));
    return comment > 0 && !line.endsWith(".") ? line.slice(0, comment).trimEnd() : line;
  }
  return undefined;
}
