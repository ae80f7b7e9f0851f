/** Limits that keep the work and the memory of every parser proportional to the size of the file. */
import { SyntaxProblem } from "./syntax-problem.ts";

/** Some programs write lists as nested elements. A file that nests deeper was made to exhaust a parser. */
const DEPTH_MAX = 2000;
/** The parser of JSON-LD calls itself for each level, and the stack has room for about 800 levels. */
export const JSON_LD_DEPTH_MAX = 200;
/**
 * A prefix or namespace is repeated in every name that uses it, so a long one multiplies the size of the file. Real
 * ones have fewer than 200 characters.
 */
const NAMESPACE_MAX = 1024;
/** Each relative IRI becomes as long as its base, so a long base multiplies the size of the file. */
const BASE_MAX = 512;
/** Each statement about a subject reads its whole IRI, so a long one multiplies the work. Real ones have at most 2,000. */
const IRI_MAX = 8192;
/** Text that a parser must hold at once: one literal, one line, one comment. Real ones have at most some megabytes. */
const PENDING_MAX = 64_000_000;

export function checkDepth(depth: number, what: string, line?: number, depthMax = DEPTH_MAX): void {
  if (depth > depthMax) throw new SyntaxProblem(`${what} nested deeper than ${depthMax}`, line);
}

export function checkNamespace(iri: string, line?: number): void {
  if (iri.length > NAMESPACE_MAX) throw new SyntaxProblem(`namespace longer than ${NAMESPACE_MAX} characters`, line);
}

export function checkBase(iri: string, line?: number): void {
  if (iri.length > BASE_MAX) throw new SyntaxProblem(`base IRI longer than ${BASE_MAX} characters`, line);
}

export function checkIri(iri: string): void {
  if (iri.length > IRI_MAX) throw new SyntaxProblem(`IRI longer than ${IRI_MAX} characters`);
}

export function checkPending(characters: number, line?: number): void {
  if (characters > PENDING_MAX) {
    throw new SyntaxProblem(`literal, line or comment longer than ${PENDING_MAX} characters`, line);
  }
}
