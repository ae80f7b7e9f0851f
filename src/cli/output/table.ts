import type { Output } from "../program.ts";

/** How a table is shown, beyond its text. */
export interface TableOptions {
  /** As wide as it may be; what is too long for that ends in an ellipsis. @default as wide as it is */
  readonly columns?: number | undefined;
  /** Colours a cell, which is given as it stands; `row` counts from 0, without the header. */
  readonly paint?: ((text: string, row: number, column: number) => string) | undefined;
}

/** Cut to fit a terminal, and whole in a pipe or a file. */
export function terminalWidth({ isTTY, columns }: Pick<Output, "isTTY" | "columns">): number | undefined {
  return isTTY ? columns : undefined;
}

const GAP = "  ";
/** A column that is cut down to less says nothing any more. */
const WIDTH_MIN = 8;

/** Columns that line up, two spaces apart, nothing at the end of a line. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  { columns = Number.POSITIVE_INFINITY, paint = text => text }: TableOptions = {},
): string {
  const all = [header, ...rows].map(row => row.map(printable));
  const widths = header.map((_, column) => Math.max(...all.map(row => (row[column] ?? "").length)));
  fit(widths, columns);
  return all
    .map((row, index) =>
      row
        .map((cell, column) => {
          const text = cut(cell, widths[column] ?? 0);
          const blanks = " ".repeat((widths[column] ?? 0) - text.length);
          return (index === 0 ? text : paint(text, index - 1, column)) + blanks;
        })
        .join(GAP)
        .trimEnd(),
    )
    .map(line => `${line}\n`)
    .join("");
}

/** Takes from the widest, one by one, until all of them fit or none can be made narrower. */
function fit(widths: number[], columns: number): void {
  let surplus = widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1) - columns;
  for (; surplus > 0; surplus -= 1) {
    const widest = Math.max(...widths);
    if (widest <= WIDTH_MIN) return;
    widths[widths.indexOf(widest)] = widest - 1;
  }
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** What came through a store may be anybody's text, and a terminal obeys some of it. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, "\u{fffd}");
}
