import type { OntologyFileFormat } from "../../src/ontology/format.ts";
import { formatTerm } from "../../src/ontology/parsing/n-triples-text.ts";
import { openParser, type ParserName, parsersFor } from "../../src/ontology/parsing/parser-choice.ts";
import { SyntaxProblem } from "../../src/ontology/parsing/syntax-problem.ts";

/** The result of one parser: the statements as lines of N-Triples, or the problem. */
export type Parsed = { readonly lines: readonly string[] } | { readonly problem: string };

/** Parses pieces of text with one parser. A file without statements is a problem. */
export async function parseWith(name: ParserName, pieces: readonly string[]): Promise<Parsed> {
  const lines: string[] = [];
  const parser = await openParser(
    name,
    (subject, predicate, object, kind, language, datatype) => {
      const from = formatTerm(subject, subject.startsWith("_:") ? "blank" : "iri");
      lines.push(`${from} <${predicate}> ${formatTerm(object, kind, language, datatype)} .`);
    },
    "http://base.example/x",
  );
  try {
    for (const piece of pieces) parser.write(piece);
    parser.end();
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    return { problem: error.message };
  }
  return parser.statements === 0 ? { problem: "no statements" } : { lines };
}

/** Parses a text as a pull does: the first parser that accepts it. */
export async function parseText(text: string, claim?: OntologyFileFormat): Promise<Parsed> {
  let first: Parsed | undefined;
  for (const name of parsersFor(text, claim)) {
    const parsed = await parseWith(name, [text]);
    if ("lines" in parsed) return parsed;
    first ??= parsed;
  }
  return first ?? { problem: "no parser" };
}
