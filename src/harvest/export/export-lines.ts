/** Works as text: CSV, JSON lines, CSL-JSON and BibTeX. Each function yields the parts of a file in their order. */
import type { WorkRecord } from "../manifest/manifest-reports.ts";
import { bibtexEntry, cslItem } from "./citation.ts";
import { type Cell, COLUMNS } from "./columns.ts";

export const TEXT_FORMATS = ["csv", "jsonl", "csl", "bibtex"] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

export async function* exportText(
  format: TextFormat,
  records: AsyncIterable<WorkRecord> | Iterable<WorkRecord>,
): AsyncIterable<string> {
  switch (format) {
    case "csv":
      yield `${COLUMNS.map(({ name }) => name).join(",")}\r\n`;
      for await (const record of records) yield `${COLUMNS.map(({ cellOf }) => csvCell(cellOf(record))).join(",")}\r\n`;
      return;
    case "jsonl":
      for await (const record of records) yield `${JSON.stringify(record)}\n`;
      return;
    case "csl": {
      let separator = "[\n";
      for await (const record of records) {
        yield `${separator}${JSON.stringify(cslItem(record))}`;
        separator = ",\n";
      }
      yield separator === "[\n" ? "[]\n" : "\n]\n";
      return;
    }
    case "bibtex":
      for await (const record of records) yield `${bibtexEntry(record)}\n`;
  }
}

/** RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
function csvCell(value: Cell): string {
  if (value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
