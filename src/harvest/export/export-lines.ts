/** Works as text: CSV, JSON lines, CSL-JSON and BibTeX. Each function yields the parts of a file in their order. */
import type { WorkRecord } from "../manifest/manifest-reports.ts";
import type { WorkAuthor } from "../work.ts";
import { bibtexEntry, cslItem } from "./citation.ts";

export const EXPORT_FORMATS = ["csv", "jsonl", "csl", "bibtex"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export async function* exportText(
  format: ExportFormat,
  records: AsyncIterable<WorkRecord> | Iterable<WorkRecord>,
): AsyncIterable<string> {
  switch (format) {
    case "csv":
      yield `${COLUMNS.map(([name]) => name).join(",")}\r\n`;
      for await (const record of records) yield `${COLUMNS.map(([, cell]) => csvCell(cell(record))).join(",")}\r\n`;
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

type Cell = string | number | boolean | undefined;

const COLUMNS: readonly (readonly [name: string, cell: (record: WorkRecord) => Cell])[] = [
  ["key", ({ key }) => key],
  ["doi", ({ ids }) => ids.doi],
  ["pmid", ({ ids }) => ids.pmid],
  ["pmcid", ({ ids }) => ids.pmcid],
  ["arxiv", ({ ids }) => ids.arxiv],
  ["openalex", ({ ids }) => ids.openalex],
  ["title", ({ metadata }) => metadata.title],
  ["authors", ({ metadata }) => metadata.authors?.map(nameOf).join("; ")],
  ["year", ({ metadata }) => metadata.year],
  ["venue", ({ metadata }) => metadata.venue],
  ["type", ({ metadata }) => metadata.type],
  ["licence", ({ licence }) => licence],
  ["open_access", ({ metadata }) => metadata.openAccess],
  ["is_retracted", ({ metadata }) => metadata.isRetracted],
  ["state", ({ state }) => state],
  ["reason", ({ reason }) => reason],
  ["path", ({ files }) => files[0]?.path],
  ["sha256", ({ files }) => files[0]?.sha256],
  ["bytes", ({ files }) => files[0]?.bytes],
  ["media_type", ({ files }) => files[0]?.mediaType],
  ["further_files", ({ files }) => furtherFiles(files)],
  ["resolver", ({ resolver }) => resolver],
  ["version", ({ version }) => version],
  ["url", ({ url }) => url],
];

/** The files after the first one, with their roles: `article a.xml; supplement a.supplement.zip`. */
function furtherFiles(files: WorkRecord["files"]): string | undefined {
  const [, ...further] = files;
  return further.length === 0 ? undefined : further.map(({ role, path }) => `${role} ${path}`).join("; ");
}

function nameOf({ family, given, name }: WorkAuthor): string {
  return family === undefined ? (name ?? "") : given === undefined ? family : `${family}, ${given}`;
}

/** RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
function csvCell(value: Cell): string {
  if (value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
