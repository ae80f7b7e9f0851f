/** A file violates the syntax of its format, or a limit of the parser. */
export class SyntaxProblem extends Error {
  override readonly name = "SyntaxProblem";

  constructor(message: string, line?: number) {
    super(line === undefined ? message : `line ${line}: ${message}`);
  }
}
