/** What to get: names from arguments, files and streams, one after the other, whatever their number. */
import { createReadStream } from "node:fs";
import { extname } from "node:path";
import { nearest } from "../../core/text/nearest.ts";
import { ConfigError } from "../../errors.ts";
import { identify } from "../identifiers/identifiers.ts";
import { withoutUrlPassword } from "../identifiers/web-url.ts";
import type { Work } from "../work.ts";
import { csvRows } from "./csv-rows.ts";
import { decoded, linesOf } from "./text-lines.ts";

export const INPUT_FORMATS = ["lines", "csv", "jsonl"] as const;
export type InputFormat = (typeof INPUT_FORMATS)[number];

export interface InputProblem {
  /** The file, `stdin`, or `arguments`. */
  readonly source: string;
  /** From 1; of an argument, its place. */
  readonly line: number;
  /** What was read there, or its beginning. */
  readonly text: string;
  readonly message: string;
}

/** Works that are named twice come twice: `work.key` tells. */
export type Input = { readonly work: Work } | { readonly problem: InputProblem };

export interface InputOptions {
  /** @default by the extension: .csv and .tsv, .jsonl and .ndjson; lines otherwise */
  readonly format?: InputFormat | undefined;
  /** The column of a CSV file, or the field of JSONL, that holds the names. @default the first of doi, id, identifier, arxiv, arxiv_id, pmcid, pmid, url */
  readonly column?: string | undefined;
}

const COLUMNS = ["doi", "id", "identifier", "arxiv", "arxiv_id", "pmcid", "pmid", "url"];
const LINE_CHARS_MAX = 8192;
/** Rows and records may carry abstracts along. */
const RECORD_CHARS_MAX = 1024 * 1024;
const SHOWN_CHARS_MAX = 200;

export function* inputsOfArguments(tokens: readonly string[]): Generator<Input> {
  for (const [index, token] of tokens.entries()) yield inputOf(token, { source: "arguments", line: index + 1 });
}

/** Throws a ConfigError where the file cannot be read; what is wrong inside it is a problem. */
export async function* inputsOfFile(path: string, options: InputOptions = {}): AsyncGenerator<Input> {
  try {
    yield* inputsOfStream(createReadStream(path), path, { ...options, format: options.format ?? formatOf(path) });
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw new ConfigError([{ where: path, path: "", message: `cannot be read: ${error.message}` }], { cause: error });
  }
}

/** @param source how problems call it: `stdin`. */
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

/** A `#` begins a comment at the start of a line and behind a blank; old DOIs hold one elsewhere. */
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
        yield { problem: { ...at, text: shown(row.cells.join(",")), message: noColumn(row.cells, wanted) } };
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
    return { problem: { ...at, text: shown(text), message: "this line is no JSON; expected one object on each line" } };
  }
  if (typeof record === "string" && wanted === undefined) return inputOf(record, at);
  if (typeof record !== "object" || record === null || Array.isArray(record))
    return { problem: { ...at, text: shown(text), message: "expected an object on each line" } };
  const name = columnIn(Object.keys(record), wanted);
  if (name === undefined)
    return { problem: { ...at, text: shown(text), message: noColumn(Object.keys(record), wanted) } };
  return inputOfCell(Reflect.get(record, name), name, at);
}

function inputOfCell(value: unknown, column: string, at: InputPosition): Input {
  const text = typeof value === "number" ? String(value) : (value ?? "");
  if (typeof text !== "string")
    return { problem: { ...at, text: shown(JSON.stringify(text)), message: `${column} holds no text` } };
  if (text.trim() === "") return { problem: { ...at, text: "", message: `${column} is empty here` } };
  return inputOf(text, at, /^(?:pmid|pubmed|pubmed_?id)$/i.test(column.trim()) ? "pmid" : undefined);
}

/** As the header spells it. */
function columnIn(names: readonly string[], wanted: string | undefined): string | undefined {
  const find = (name: string) => names.find(each => each.trim().toLowerCase() === name.trim().toLowerCase());
  if (wanted !== undefined) return find(wanted);
  return COLUMNS.map(find).find(name => name !== undefined);
}

function noColumn(names: readonly string[], wanted: string | undefined): string {
  const there = `there are: ${shown(names.slice(0, 20).join(", "))}`;
  if (wanted === undefined) return `no column is called ${COLUMNS.join(", ")}; name one with --column; ${there}`;
  const near = nearest(wanted, names.slice(0, 1000));
  return `no column is called ${shown(wanted)}${near === undefined ? "" : `; did you mean ${shown(near)}?`}; ${there}`;
}

interface InputPosition {
  readonly source: string;
  readonly line: number;
}

function inputOf(token: string, at: InputPosition, digitsAre?: "pmid"): Input {
  const read = identify(token, digitsAre);
  return "work" in read ? read : { problem: { ...at, text: shown(token), message: read.message } };
}

function tooLong(text: string, at: InputPosition, charsMax: number): Input {
  return { problem: { ...at, text: shown(text), message: `the line has more than ${charsMax} characters` } };
}

function shown(text: string): string {
  const safe = withoutUrlPassword(text);
  return safe.length > SHOWN_CHARS_MAX ? `${safe.slice(0, SHOWN_CHARS_MAX)}…` : safe;
}
