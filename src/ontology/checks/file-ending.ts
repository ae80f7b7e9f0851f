import type { OntologyFileFormat } from "../format.ts";

/** How many bytes of the end `endingProblem` reads. */
export const ENDING_BYTES = 4096;

/**
 * Why the end of a file is not valid; undefined if it is. The length cannot show it: some servers truncate a file and
 * announce the shorter length.
 */
export function endingProblem(format: OntologyFileFormat, tail: string): string | undefined {
  const rule = ENDINGS[format];
  return rule.isComplete(tail) ? undefined : `file is incomplete: it ends without ${rule.expected}`;
}

interface EndingRule {
  readonly expected: string;
  readonly isComplete: (tail: string) => boolean;
}

const closes = (name: string, tag: RegExp): EndingRule => ({
  expected: `</${name}>`,
  isComplete: tail => tag.test(tail.replace(/(?:\s|<!--(?:(?!-->)[\s\S])*-->)*$/, "")),
});
const closesBracket: EndingRule = { expected: "a closing bracket", isComplete: tail => /[}\]]\s*$/.test(tail) };

const ENDINGS: Readonly<Record<OntologyFileFormat, EndingRule>> = {
  "rdf-xml": closes("rdf:RDF", /<\/(?:[\w.-]+:)?RDF\s*>$/),
  "owl-xml": closes("Ontology", /<\/(?:[\w.-]+:)?Ontology\s*>$/),
  // OBO has no closing mark, but programs that write it end the last line.
  obo: { expected: "a line break", isComplete: tail => /\n$/.test(tail) },
  obographs: closesBracket,
  "json-ld": closesBracket,
  turtle: { expected: 'the final "." of a statement', isComplete: tail => /[.}]$/.test(withoutComments(tail)) },
  functional: { expected: "a closing parenthesis", isComplete: tail => /\)$/.test(withoutComments(tail)) },
};

/**
 * The last line that is not blank and not a comment. Only " # " inside a line begins a comment: `#` can be part of an
 * IRI.
 */
function withoutComments(tail: string): string {
  const lines = tail.split(/\r?\n/);
  while (lines.length > 0 && /^\s*(?:#.*)?$/.test(lines.at(-1) ?? "")) lines.pop();
  return (lines.at(-1) ?? "").replace(/\s#\s.*$/, "").trimEnd();
}
