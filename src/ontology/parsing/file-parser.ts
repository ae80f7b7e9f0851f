import type { OntologyFileFormat } from "../format.ts";

/** What `statements` counts. */
export type StatementUnit = "triples" | "stanzas" | "axioms" | "nodes" | "concepts";

/** Parses one file from text that arrives in chunks. No statement is kept. */
export interface FileParser {
  /** Known from the start, or as soon as the root element, the keys or the statements have decided. */
  readonly format: OntologyFileFormat | undefined;
  /** How many statements were parsed so far. */
  readonly statements: number;
  readonly of: StatementUnit;
  /** Why the statements are not known although the file is valid. */
  readonly note?: string | undefined;
  /** @throws SyntaxProblem */
  write(text: string): void;
  /** Call it once, after the last chunk. @throws SyntaxProblem if the file is incomplete. */
  end(): void;
}
