/** A file violates the syntax of its format, or a limit of the parser. */
export class SyntaxProblem extends Error {
  override readonly name = "SyntaxProblem";
  /** The line of the file; undefined where the code that found the problem does not know it. */
  readonly line: number | undefined;

  constructor(message: string, line?: number) {
    super(line === undefined ? message : `line ${line}: ${message}`);
    this.line = line;
  }
}

/** Runs one step of a parser. A problem without a line gets the line that `reader` has reached. */
export function withLine(reader: { readonly line: number }, step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof SyntaxProblem) || error.line !== undefined) throw error;
    throw new SyntaxProblem(error.message, reader.line);
  }
}
