/** Reads works from arguments, files and streams one by one, so that a list of any length fits in memory. */
import { createReadStream } from "node:fs";
import { extname } from "node:path";
import { nearest } from "../../core/text/nearest.ts";
import { ConfigError } from "../../errors.ts";
import { identify } from "../identifiers/identifiers.ts";
import { shortened } from "../identifiers/quoted-input.ts";
import type { Work } from "../work.ts";
import { csvRows } from "./csv-rows.ts";
import { decoded, linesOf } from "./text-lines.ts";

export const INPUT_FORMATS = ["lines", "csv", "jsonl"] as const;
export type InputFormat = (typeof INPUT_FORMATS)[number];

export interface InputProblem {
  /** The file, `stdin`, or `arguments`. */
  readonly source: string;
  /** From 1; the position of an argument. */
  readonly line: number;
  /** The text of the line, shortened. */
  readonly text: string;
  readonly message: string;
}

/** A work that is listed twice is returned twice, with the same `work.key`. */
export type Input = { readonly work: Work } | { readonly problem: InputProblem };

export interface InputOptions {
  /** @default by the extension: .csv and .tsv, .jsonl and .ndjson; lines otherwise */
  readonly format?: InputFormat | undefined;
  /** The column of a CSV file, or the field of JSONL, with the identifiers. @default the first of doi, id, identifier, arxiv, arxiv_id, pmcid, pmid, url */
  readonly column?: string | undefined;
}

const COLUMNS = ["doi", "id", "identifier", "arxiv", "arxiv_id", "pmcid", "pmid", "url"];
const LINE_CHARS_MAX = 8192;
/** Rows and records may contain abstracts. */
const RECORD_CHARS_MAX = 1024 * 1024;

export function* inputsOfArguments(tokens: readonly string[]): Generator<Input> {
  for (const [index, token] of tokens.entries()) yield inputOf(token, { source: "arguments", line: index + 1 });
}

/** Throws a ConfigError if the file cannot be read; an invalid line is an `InputProblem`. */
export async function* inputsOfFile(path: string, options: InputOptions = {}): AsyncGenerator<Input> {
  try {
    yield* inputsOfStream(createReadStream(path), path, { ...options, format: options.format ?? formatOf(path) });
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw new ConfigError([{ where: path, path: "", message: `cannot be read: ${error.message}` }], { cause: error });
  }
}

/** @param source the name in problems: `stdin` */
export function inputsOfStream(
  chunks: AsyncIterable<Uint8Array | string>,
  source: string,
  { format = "lines", column }: InputOptions = {},
): AsyncGenerator<Input> {
  const texts = decoded(chunks);
  if (format === "csv") return inputsOfCsv(texts, source, column);
  return format === "jsonl" ? inputsOfJsonl(texts, source, column) : inputsOfLines(texts, source);
}

/** By the file extension; `lines` for an unknown one. */
export function formatOf(path: string): InputFormat {
  const extension = extname(path).toLowerCase();
  if (extension === ".csv" || extension === ".tsv") return "csv";
  return extension === ".jsonl" || extension === ".ndjson" ? "jsonl" : "lines";
}

/** A `#` starts a comment at the start of a line or after a space; old DOIs contain `#` elsewhere. */
async function* inputsOfLines(texts: AsyncIterable<string>, source: string): AsyncGenerator<Input> {
  for await (const { number, text, isTooLong } of linesOf(texts, LINE_CHARS_MAX)) {
    const at = { source, line: number };
    if (isTooLong) yield tooLong(text, at, LINE_CHARS_MAX);
    else {
      const token = text.replace(/(?:^|\s)#.*$/s, "").trim();
      if (token !== "") yield inputOf(token, at);
    }
  }
}

async function* inputsOfCsv(
  texts: AsyncIterable<string>,
  source: string,
  wanted: string | undefined,
): AsyncGenerator<Input> {
  let column: { readonly index: number; readonly name: string } | undefined;
  for await (const row of csvRows(texts, RECORD_CHARS_MAX)) {
    const at = { source, line: row.line };
    if ("message" in row) yield { problem: { ...at, text: "", message: row.message } };
    else if (column === undefined) {
      const name = columnIn(row.cells, wanted);
      if (name === undefined) {
        yield { problem: { ...at, text: shortened(row.cells.join(",")), message: noColumn(row.cells, wanted) } };
        return;
      }
      column = { index: row.cells.indexOf(name), name };
    } else yield inputOfCell(row.cells[column.index], column.name, at);
  }
}

async function* inputsOfJsonl(
  texts: AsyncIterable<string>,
  source: string,
  wanted: string | undefined,
): AsyncGenerator<Input> {
  for await (const { number, text, isTooLong } of linesOf(texts, RECORD_CHARS_MAX)) {
    const at = { source, line: number };
    if (isTooLong) yield tooLong(text, at, RECORD_CHARS_MAX);
    else if (text.trim() !== "") yield inputOfRecord(text, at, wanted);
  }
}

function inputOfRecord(text: string, at: InputPosition, wanted: string | undefined): Input {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return { problem: { ...at, text: shortened(text), message: "not valid JSON; expected one JSON object per line" } };
  }
  if (typeof record === "string" && wanted === undefined) return inputOf(record, at);
  if (typeof record !== "object" || record === null || Array.isArray(record))
    return { problem: { ...at, text: shortened(text), message: "expected one JSON object per line" } };
  const name = columnIn(Object.keys(record), wanted);
  if (name === undefined)
    return { problem: { ...at, text: shortened(text), message: noColumn(Object.keys(record), wanted) } };
  return inputOfCell(Reflect.get(record, name), name, at);
}

function inputOfCell(value: unknown, column: string, at: InputPosition): Input {
  const text = typeof value === "number" ? String(value) : (value ?? "");
  if (typeof text !== "string")
    return { problem: { ...at, text: shortened(JSON.stringify(text)), message: `${column} is not a string` } };
  if (text.trim() === "") return { problem: { ...at, text: "", message: `${column} is empty` } };
  return inputOf(text, at, /^(?:pmid|pubmed|pubmed_?id)$/i.test(column.trim()) ? "pmid" : undefined);
}

/** The name as the header spells it. */
function columnIn(names: readonly string[], wanted: string | undefined): string | undefined {
  const find = (name: string) => names.find(each => each.trim().toLowerCase() === name.trim().toLowerCase());
  if (wanted !== undefined) return find(wanted);
  return COLUMNS.map(find).find(name => name !== undefined);
}

function noColumn(names: readonly string[], wanted: string | undefined): string {
  const found = `columns found: ${shortened(names.slice(0, 20).join(", "))}`;
  if (wanted === undefined)
    return `none of the columns ${COLUMNS.join(", ")} was found; name the column with --column; ${found}`;
  const near = nearest(wanted, names.slice(0, 1000));
  return `column ${shortened(wanted)} not found${near === undefined ? "" : `; did you mean ${shortened(near)}?`}; ${found}`;
}

interface InputPosition {
  readonly source: string;
  readonly line: number;
}

function inputOf(token: string, at: InputPosition, digitsAre?: "pmid"): Input {
  const read = identify(token, digitsAre);
  return "work" in read ? read : { problem: { ...at, text: shortened(token), message: read.message } };
}

function tooLong(text: string, at: InputPosition, charsMax: number): Input {
  return { problem: { ...at, text: shortened(text), message: `the line has more than ${charsMax} characters` } };
}
