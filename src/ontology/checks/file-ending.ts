import type { OntologyFileFormat } from "../format.ts";

/** How many bytes from the end `endingProblem` looks at. */
export const ENDING_BYTES = 4096;

/**
 * What is wrong with how a file ends; undefined when nothing is. A file that was cut off mostly parses up to there, and
 * servers have been seen to cut files off and announce the shorter length.
 */
export function endingProblem(format: OntologyFileFormat, tail: string): string | undefined {
  const rule = ENDINGS[format];
  return rule.isComplete(tail) ? undefined : `it ends without ${rule.expected}`;
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
  // The format has no end of its own; whoever writes it ends the last line.
  obo: { expected: "the end of its last line", isComplete: tail => /\n$/.test(tail) },
  obographs: closesBracket,
  "json-ld": closesBracket,
  turtle: { expected: "the full stop of its last statement", isComplete: tail => /[.}]$/.test(withoutComments(tail)) },
  functional: { expected: "a closing parenthesis", isComplete: tail => /\)$/.test(withoutComments(tail)) },
};

/** Without the lines at the end that say nothing. A `#` within a line may be part of an IRI. */
function withoutComments(tail: string): string {
  const lines = tail.split(/\r?\n/);
  while (lines.length > 0 && /^\s*(?:#.*)?$/.test(lines.at(-1) ?? "")) lines.pop();
  return (lines.at(-1) ?? "").replace(/\s#\s.*$/, "").trimEnd();
}
