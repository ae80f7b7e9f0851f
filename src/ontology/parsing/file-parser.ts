import type { OntologyFileFormat } from "../format.ts";

/** What `statements` counts. */
export type StatementUnit = "triples" | "stanzas" | "axioms" | "nodes" | "concepts";

/** Parses one file from text that arrives in chunks. It emits statements and keeps none. */
export interface FileParser {
  /** Undefined until the root element, a key or a statement has shown the format. */
  readonly format: OntologyFileFormat | undefined;
  /** How many statements were parsed so far. */
  readonly statements: number;
  readonly statementUnit: StatementUnit;
  /** Why the statements of a valid file are missing, all of them or some; undefined if none is missing. */
  readonly note?: string | undefined;
  /** Of OBO, after the end of the file: the ids of relations that stand for others. */
  readonly shorthands?: ReadonlyMap<string, string> | undefined;
  /** @throws SyntaxProblem */
  write(text: string): void;
  /** Call it once, after the last chunk. @throws SyntaxProblem if the file is incomplete. */
  end(): void;
}
