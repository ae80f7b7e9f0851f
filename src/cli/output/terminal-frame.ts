import { stripVTControlCharacters } from "node:util";
import type { Output } from "../program.ts";

/**
 * Prints the changing state of a command. On a terminal each text replaces the previous one; elsewhere it follows it.
 * The cursor and the screen mode are never changed, so nothing has to be restored when the process ends.
 */
export class TerminalFrame {
  readonly #output: Output;
  readonly #isInPlace: boolean;
  #rows = 0;
  #isFirst = true;

  constructor(output: Output, isInPlace: boolean) {
    this.#output = output;
    this.#isInPlace = isInPlace;
  }

  show(text: string): void {
    if (!this.#isInPlace) {
      // A blank line separates texts of several lines.
      const isBlock = text.indexOf("\n") < text.length - 1;
      this.#output.write(this.#isFirst || !isBlock ? text : `\n${text}`);
      this.#isFirst = false;
      return;
    }
    const { rows, lines } = this.#fitting(text.replace(/\n$/, "").split("\n"));
    const back = this.#rows > 0 ? `\r\x1b[${this.#rows}A` : "";
    // One write, and only the rest of each line is cleared: otherwise the terminal flickers.
    this.#output.write(`${back}${lines.map(line => `${line}\x1b[K\n`).join("")}\x1b[J`);
    this.#rows = rows;
  }

  /** Erases the text on a terminal, so that other lines can be printed. */
  clear(): void {
    if (this.#rows > 0) this.#output.write(`\r\x1b[${this.#rows}A\x1b[J`);
    this.#rows = 0;
  }

  /** Lines that have scrolled out of the terminal cannot be written over, so the text must fit its height. */
  #fitting(lines: readonly string[]): { readonly rows: number; readonly lines: readonly string[] } {
    // Some terminals report 0 if they do not know their size.
    const columns = this.#output.columns || 80;
    const maxRows = this.#output.rows || 24;
    const kept: string[] = [];
    let rows = 0;
    for (const line of lines) {
      const lineRows = Math.max(1, Math.ceil(stripVTControlCharacters(line).length / columns));
      // One row is for the cursor, one for the count of the lines left out.
      if (rows + lineRows > maxRows - 2) {
        kept.push(`… and ${lines.length - kept.length} more lines`);
        rows += 1;
        break;
      }
      kept.push(line);
      rows += lineRows;
    }
    return { rows, lines: kept };
  }
}
