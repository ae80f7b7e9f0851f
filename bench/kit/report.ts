/** The report of a benchmark and its text form. `--json` prints the same values. */

/** Undefined if a library has no such feature. */
export type TableCell = string | number | undefined;

export interface BenchTable {
  readonly title: string;
  /** Remarks that are needed to understand the numbers. */
  readonly notes?: readonly string[];
  readonly columns: readonly string[];
  readonly rows: readonly (readonly TableCell[])[];
}

/** A target of the project, and the measured value. */
export interface Figure {
  readonly what: string;
  readonly wanted: string;
  readonly measured: number;
  readonly isReached: boolean;
}

export function atMost(what: string, measured: number, bound: number): Figure {
  return { what, wanted: `at most ${shown(bound)}`, measured, isReached: measured <= bound };
}

export function atLeast(what: string, measured: number, bound: number): Figure {
  return { what, wanted: `at least ${shown(bound)}`, measured, isReached: measured >= bound };
}

export function formatTable({ title, notes = [], columns, rows }: BenchTable): string {
  const lines = [columns, ...rows.map(row => row.map(shown))];
  const widths = columns.map((_, column) => Math.max(...lines.map(line => (line[column] ?? "").length)));
  const isNumeric = columns.map((_, column) => rows.some(row => typeof row[column] === "number"));
  const format = (line: readonly string[]) =>
    line
      .map((text, column) =>
        isNumeric[column] ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  const [head = [], ...body] = lines;
  const rule = widths.map(width => "-".repeat(width)).join("  ");
  return [title, ...notes.map(note => `  ${note}`), "", format(head), rule, ...body.map(format), ""].join("\n");
}

export function formatFigures(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, wanted, measured, isReached }) => [
    isReached ? "reached" : "MISSED",
    what,
    wanted,
    measured,
  ]);
  return formatTable({ title: "Targets", columns: ["", "what", "wanted", "measured"], rows });
}

/** Three significant digits, because measurements are noisy. Counts are exact and are not rounded. */
function shown(cell: TableCell): string {
  if (cell === undefined) return "-";
  if (typeof cell === "string") return cell;
  if (Number.isInteger(cell)) return cell.toLocaleString("en");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(cell))));
  return cell.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 3) });
}
