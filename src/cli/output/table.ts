import type { Output } from "../program.ts";
import { printable } from "./printable.ts";

export interface TableOptions {
  /** Maximum width, at least 20. A table that does not fit is printed in its long form. @default unlimited */
  readonly columns?: number | undefined;
  /** Colours a piece of a cell; `row` counts from 0, without the header. */
  readonly paint?: ((text: string, row: number, column: number) => string) | undefined;
  /** Leaves the first cell of a row empty if it equals that of the row above. The long form repeats it. */
  readonly hidesRepeats?: boolean | undefined;
}

type Cells = readonly string[];
type Paint = NonNullable<TableOptions["paint"]>;

const GAP = "  ";
/** A word up to this length is never broken in a table: hosts, dates and rates stay readable. */
const UNBROKEN_CHARS = 24;
/** Text in a narrower column than this is hard to read. */
const MIN_TEXT_WIDTH = 10;
/** The same for the values of pairs, which are sentences. */
const MIN_VALUE_WIDTH = 24;

/** In a narrower terminal the lines of the long form would be mostly headings. */
const MIN_COLUMNS = 20;

/** The width that output must fit: that of the terminal; undefined in a pipe or a file, or if it is unknown (0). */
export function terminalWidth({ isTTY, columns }: Pick<Output, "isTTY" | "columns">): number | undefined {
  return isTTY && columns ? Math.max(columns, MIN_COLUMNS) : undefined;
}

/**
 * Aligned columns, two spaces apart. If the table is too wide, its cells wrap; if that would break words, each row
 * becomes a block of `heading: value` lines (the long form). No cell is cut and no column is dropped.
 */
export function formatTable(
  header: Cells,
  rows: readonly Cells[],
  { columns = Number.POSITIVE_INFINITY, paint = text => text, hidesRepeats = false }: TableOptions = {},
): string {
  const headings = header.map(printable);
  const cells = rows.map(row => row.map(printable));
  const natural = headings.map((_, column) => widest([headings, ...cells], column, ({ length }) => length));
  const least = headings.map((heading, column) => Math.max(longestWord(heading), widest(cells, column, leastWidth)));
  const widths = fittingWidths(natural, least, columns);
  if (widths === undefined) return longForm(headings, cells, columns, paint);
  const shown = hidesRepeats ? cells.map((row, index) => withoutRepeat(row, cells[index - 1])) : cells;
  const lines = [
    ...rowLines(headings, widths, text => text),
    ...shown.flatMap((row, index) => rowLines(row, widths, (text, column) => paint(text, index, column))),
  ];
  return lines.map(line => `${line}\n`).join("");
}

/** Names and values without a heading, such as the figures of a report. */
export function formatPairs(
  pairs: readonly (readonly [name: string, value: string])[],
  { columns = Number.POSITIVE_INFINITY }: Pick<TableOptions, "columns"> = {},
): string {
  const natural = [0, 1].map(column => widest(pairs, column, ({ length }) => length));
  const [nameWidth = 0, valueWidth = 0] = natural;
  const widths = fittingWidths(natural, [nameWidth, Math.min(valueWidth, MIN_VALUE_WIDTH)], columns);
  const lines =
    widths === undefined
      ? pairs.flatMap(([name, value]) => wrapIndented(`${name}: ${printable(value)}`, columns))
      : pairs.flatMap(pair => rowLines(pair.map(printable), widths, text => text));
  return lines.map(line => `${line}\n`).join("");
}

function withoutRepeat(row: Cells, above: Cells | undefined): Cells {
  return above !== undefined && above[0] === row[0] ? ["", ...row.slice(1)] : row;
}

function widest(rows: readonly Cells[], column: number, width: (cell: string) => number): number {
  return longest(rows, row => width(row[column] ?? ""));
}

/** Not Math.max(...): more than about 100,000 arguments overflow the stack. */
export function longest<Item>(items: readonly Item[], length: (item: Item) => number): number {
  return items.reduce((max, item) => Math.max(max, length(item)), 0);
}

function leastWidth(cell: string): number {
  return Math.max(longestWord(cell), Math.min(cell.length, MIN_TEXT_WIDTH));
}

/** Narrows the widest columns first. Undefined if the columns do not fit although each has its least width. */
function fittingWidths(
  natural: readonly number[],
  least: readonly number[],
  columns: number,
): readonly number[] | undefined {
  const widths = [...natural];
  const gaps = GAP.length * (widths.length - 1);
  let surplus = widths.reduce((sum, width) => sum + width, gaps) - columns;
  for (; surplus > 0; surplus -= 1) {
    const narrowable = widths.map((width, column) => (width > (least[column] ?? 0) ? width : 0));
    const width = Math.max(0, ...narrowable);
    if (width === 0) return undefined;
    widths[narrowable.indexOf(width)] = width - 1;
  }
  return widths;
}

function longestWord(text: string): number {
  return longest(text.split(" "), word => Math.min(word.length, UNBROKEN_CHARS));
}

function rowLines(
  row: Cells,
  widths: readonly number[],
  paint: (text: string, column: number) => string,
): readonly string[] {
  const wrapped = widths.map((width, column) => wrap(row[column] ?? "", width));
  const height = Math.max(1, ...wrapped.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) =>
    widths
      .map((width, column) => {
        const text = wrapped[column]?.[line] ?? "";
        return (text === "" ? text : paint(text, column)) + " ".repeat(width - text.length);
      })
      .join(GAP)
      .trimEnd(),
  );
}

function longForm(header: Cells, rows: readonly Cells[], columns: number, paint: Paint): string {
  const blocks = rows.map((row, index) =>
    row.flatMap((value, column) => {
      if (value === "") return [];
      const name = header[column] ?? "";
      const prefix = name === "" ? "" : `${name}: `;
      const [first = "", ...rest] = wrapIndented(`${prefix}${value}`, columns);
      // The value is coloured, its heading is not.
      const head = first.length > prefix.length ? prefix + paint(first.slice(prefix.length), index, column) : first;
      return [head, ...rest.map(text => paint(text, index, column))].map(text => `${text}\n`);
    }),
  );
  return blocks.map(block => block.join("")).join("\n");
}

function wrapIndented(text: string, width: number): readonly string[] {
  const indent = "  ";
  if (text.length <= width) return [text];
  return wrap(text, width - indent.length).map((line, index) => (index === 0 ? line : indent + line));
}

/** Lines of at most `width` characters, broken at spaces; a longer word is broken behind a punctuation mark. */
function wrap(text: string, width: number): readonly string[] {
  if (text.length <= width) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/ +/)) {
    if (line !== "" && line.length + 1 + word.length <= width) {
      line += ` ${word}`;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    while (line.length > width) {
      const end = breakPoint(line, width);
      lines.push(line.slice(0, end));
      line = line.slice(end);
    }
  }
  return [...lines, line];
}

function breakPoint(word: string, width: number): number {
  const [, head = ""] = /^(.*[./_,=&?-])/.exec(word.slice(0, width)) ?? [];
  return head.length > width / 2 ? head.length : width;
}
