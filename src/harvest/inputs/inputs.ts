/** Reads works from arguments, files and streams one by one, so that a list of any length fits in memory. */
import { createReadStream } from "node:fs";
import { extname } from "node:path";
import { ConfigError } from "../../errors.ts";
import { identify } from "../identifiers/identifiers.ts";
import { shortened } from "../identifiers/quoted-input.ts";
import { splitIdentifiers } from "../identifiers/split-identifiers.ts";
import type { Work } from "../work.ts";
import { bibtexEntries } from "./bibtex-entries.ts";
import { csvRows } from "./csv-rows.ts";
import { columnProblem, identifiersInColumn, workOfRecord } from "./record-columns.ts";
import { taggedRecords } from "./tagged-records.ts";
import { decoded, type InputLine, linesOf } from "./text-lines.ts";

export const INPUT_FORMATS = ["lines", "csv", "jsonl", "bibtex", "ris"] as const;
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
  /** @default by the extension: .csv, .tsv, .jsonl, .ndjson, .bib, .bibtex, .ris and .nbib; lines for any other */
  readonly format?: InputFormat | undefined;
  /**
   * The column of a CSV file, or the field of JSONL, with the identifiers. @default every known one: see `ID_COLUMNS`
   */
  readonly column?: string | undefined;
}

const LINE_CHARS_MAX = 8192;
/** Rows and records may contain abstracts. */
const RECORD_CHARS_MAX = 1024 * 1024;

export function* inputsOfArguments(tokens: readonly string[]): Generator<Input> {
  for (const [index, token] of tokens.entries()) yield* inputsOfText(token, { source: "arguments", line: index + 1 });
}

/**
 * Throws a ConfigError if the file cannot be read, or if no column of a CSV file has the identifiers. An invalid line is
 * an `InputProblem`.
 */
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
  if (format === "bibtex") return inputsOfBibtex(texts, source);
  if (format === "ris") return inputsOfTagged(texts, source);
  return format === "jsonl" ? inputsOfJsonl(texts, source, column) : inputsOfLines(texts, source);
}

/** By the file extension; `lines` for an unknown one. */
export function formatOf(path: string): InputFormat {
  const extension = extname(path).toLowerCase();
  if (extension === ".csv" || extension === ".tsv") return "csv";
  if (extension === ".bib" || extension === ".bibtex") return "bibtex";
  if (extension === ".ris" || extension === ".nbib") return "ris";
  return extension === ".jsonl" || extension === ".ndjson" ? "jsonl" : "lines";
}

/** A `#` starts a comment at the start of a line or after a space; old DOIs contain `#` elsewhere. */
async function* inputsOfLines(texts: AsyncIterable<string>, source: string): AsyncGenerator<Input> {
  for await (const { number, text, isTooLong } of linesOf(texts, LINE_CHARS_MAX)) {
    const at = { source, line: number };
    if (isTooLong) yield tooLong(text, at, LINE_CHARS_MAX);
    else {
      const token = text.replace(/(?:^|\s)#.*$/s, "").trim();
      if (token !== "") yield* inputsOfText(token, at);
    }
  }
}

async function* inputsOfCsv(
  texts: AsyncIterable<string>,
  source: string,
  wanted: string | undefined,
): AsyncGenerator<Input> {
  let names: readonly string[] | undefined;
  for await (const row of csvRows(texts, RECORD_CHARS_MAX)) {
    const at = { source, line: row.line };
    if ("message" in row) yield { problem: { ...at, text: "", message: row.message } };
    else if (names === undefined) {
      const problem = columnProblem(row.cells, wanted);
      if (problem !== undefined) {
        const where = wanted === undefined ? source : "--column";
        throw new ConfigError([{ where, path: "", message: problem }]);
      }
      names = row.cells;
    } else {
      yield* inputsOfRecord(recordOf(names, row.cells), wanted, at);
    }
  }
}

/** Of columns with the same name, as a merge of tables leaves them, the first that is not empty counts. */
function recordOf(names: readonly string[], cells: readonly string[]): Readonly<Record<string, string | undefined>> {
  const record = new Map<string, string | undefined>();
  for (const [index, name] of names.entries()) if (!record.get(name)?.trim()) record.set(name, cells[index]);
  return Object.fromEntries(record);
}

/** Without this problem a file of another format would be a list without works. */
function noRecords(isEmpty: boolean, source: string, expected: string): readonly Input[] {
  return isEmpty ? [] : [{ problem: { source, line: 1, text: "", message: `found no ${expected}` } }];
}

async function* inputsOfBibtex(texts: AsyncIterable<string>, source: string): AsyncGenerator<Input> {
  let isEmpty = true;
  let entries = 0;
  async function* seen(): AsyncGenerator<string> {
    for await (const text of texts) {
      isEmpty &&= text.trim() === "";
      yield text;
    }
  }
  for await (const entry of bibtexEntries(seen(), RECORD_CHARS_MAX)) {
    entries += 1;
    const at = { source, line: entry.line };
    if ("message" in entry) yield { problem: { ...at, text: "", message: entry.message } };
    else {
      const { eprint, ...fields } = entry.fields;
      // Other archives have eprints too.
      const isArxiv = /^arxiv$/i.test(fields["archiveprefix"] ?? fields["eprinttype"] ?? "arxiv");
      yield* inputsOfRecord(eprint === undefined || !isArxiv ? fields : { ...fields, arxiv: eprint }, undefined, at);
    }
  }
  if (entries === 0)
    yield* noRecords(isEmpty, source, "BibTeX entry of a work, such as @article{key, doi = {10.1234/abc}}");
}

async function* inputsOfTagged(texts: AsyncIterable<string>, source: string): AsyncGenerator<Input> {
  let isEmpty = true;
  let records = 0;
  async function* seen(): AsyncGenerator<InputLine> {
    for await (const line of linesOf(texts, RECORD_CHARS_MAX)) {
      isEmpty &&= line.text.trim() === "";
      yield line;
    }
  }
  for await (const { line, fields } of taggedRecords(seen())) {
    records += 1;
    yield* inputsOfRecord(fields, undefined, { source, line });
  }
  if (records === 0) yield* noRecords(isEmpty, source, 'RIS or PubMed record with lines such as "DO  - 10.1234/abc"');
}

async function* inputsOfJsonl(
  texts: AsyncIterable<string>,
  source: string,
  wanted: string | undefined,
): AsyncGenerator<Input> {
  for await (const { number, text, isTooLong } of linesOf(texts, RECORD_CHARS_MAX)) {
    const at = { source, line: number };
    if (isTooLong) yield tooLong(text, at, RECORD_CHARS_MAX);
    else if (text.trim() !== "") yield* inputsOfJson(text, at, wanted);
  }
}

function* inputsOfJson(text: string, at: InputPosition, wanted: string | undefined): Generator<Input> {
  let record: unknown;
  const problem = (message: string) => ({ problem: { ...at, text: shortened(text), message } });
  try {
    record = JSON.parse(text);
  } catch {
    yield problem("not valid JSON; expected one JSON object per line");
    return;
  }
  if (typeof record === "string" && wanted === undefined) {
    yield* inputsOfText(record, at);
    return;
  }
  if (typeof record !== "object" || record === null || Array.isArray(record)) {
    yield problem("expected one JSON object per line");
    return;
  }
  const message = columnProblem(Object.keys(record), wanted);
  if (message === undefined)
    yield* inputsOfRecord(wanted === undefined ? withNestedIds(record) : { ...record }, wanted, at);
  else yield problem(message);
}

/** `docstokg export` and OpenAlex write the identifiers of a work as an object of their own. */
function withNestedIds(record: object): Readonly<Record<string, unknown>> {
  const fields = record as Readonly<Record<string, unknown>>;
  const { ids, ...others } = fields;
  if (typeof ids !== "object" || ids === null || Array.isArray(ids)) return fields;
  // An identifier that is null there may be known outside.
  return { ...others, ...Object.fromEntries(Object.entries(ids).filter(([, id]) => id !== null && id !== "")) };
}

interface InputPosition {
  readonly source: string;
  readonly line: number;
}

/** One record of a table: one work under all its identifiers, or one for each identifier of the wanted column. */
function* inputsOfRecord(
  record: Readonly<Record<string, unknown>>,
  wanted: string | undefined,
  at: InputPosition,
): Generator<Input> {
  const read = wanted === undefined ? workOfRecord(record) : identifiersInColumn(record, wanted);
  if ("message" in read) yield { problem: { ...at, text: shortened(read.text), message: read.message } };
  else if ("tokens" in read) for (const token of read.tokens) yield inputOf(token, at, read.digitsAre);
  else yield { work: read.work };
}

/** The works of a text, which may name several. */
function* inputsOfText(text: string, at: InputPosition): Generator<Input> {
  for (const token of splitIdentifiers(text)) yield inputOf(token, at);
}

function inputOf(token: string, at: InputPosition, digitsAre?: "pmid"): Input {
  const read = identify(token, digitsAre);
  return "work" in read ? read : { problem: { ...at, text: shortened(token), message: read.message } };
}

function tooLong(text: string, at: InputPosition, charsMax: number): Input {
  return { problem: { ...at, text: shortened(text), message: `the line has more than ${charsMax} characters` } };
}
