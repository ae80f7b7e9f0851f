import { CsvError, parse } from "csv-parse";

export interface CsvRow {
  /** The first line of the row, from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

export interface CsvProblem {
  readonly line: number;
  readonly message: string;
}

/** How much of the file is read to find the end of its first line, which decides the delimiter. */
const HEADER_CHARS_MAX = 65_536;
const DELIMITERS = [",", "\t", ";"];

/**
 * The rows with the header. A row longer than `charsMax` ends the file: after an unclosed quote, the following rows
 * cannot be distinguished from its text.
 */
export async function* csvRows(texts: AsyncIterable<string>, charsMax: number): AsyncGenerator<CsvRow | CsvProblem> {
  const { head, all } = await withHead(texts);
  let rows: CsvRow[] = [];
  let linesRead = 0;
  const parser = parse({
    delimiter: delimiterOf(head),
    record_delimiter: ["\r\n", "\n", "\r"],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: charsMax,
    // Collected here and not read from the stream, which drops its buffered rows when it fails.
    on_record(record: string[], { lines }) {
      rows.push({ line: lines - record.reduce((sum, cell) => sum + newlinesIn(cell), 0), cells: record });
      linesRead = lines;
      return undefined;
    },
  });
  // The callback of write reports the error; without a listener the event would end the process.
  parser.on("error", () => undefined);
  try {
    let error: Error | undefined;
    for await (const text of all) {
      error = await errorOf(done => parser.write(text, done));
      yield* rows;
      rows = [];
      if (error !== undefined) break;
    }
    error ??= await errorOf(done => parser.end(done));
    yield* rows;
    if (error !== undefined) yield { line: linesRead + 1, message: messageOf(error, charsMax) };
  } finally {
    parser.destroy();
  }
}

/** Resolves to the error that the callback of a stream operation is called with. */
function errorOf(operation: (done: (error?: Error | null) => void) => void): Promise<Error | undefined> {
  return new Promise(resolve => operation(error => resolve(error ?? undefined)));
}

function messageOf(error: Error, charsMax: number): string {
  const rest = "the rest of the file was not read";
  const code = error instanceof CsvError ? error.code : undefined;
  if (code === "CSV_MAX_RECORD_SIZE")
    return `row has more than ${charsMax} characters (missing closing quote?); ${rest}`;
  if (code === "CSV_QUOTE_NOT_CLOSED") return `unclosed quote; ${rest}`;
  return `${error.message}; ${rest}`;
}

/** The texts, and their beginning with the first line. */
async function withHead(texts: AsyncIterable<string>): Promise<{ head: string; all: AsyncGenerator<string> }> {
  const iterator = texts[Symbol.asyncIterator]();
  let head = "";
  let isOver = false;
  while (!isOver && head.length < HEADER_CHARS_MAX && !/[\r\n]/.test(head)) {
    const next = await iterator.next();
    isOver = next.done === true;
    head += next.done === true ? "" : next.value;
  }
  async function* all(): AsyncGenerator<string> {
    try {
      yield head;
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  }
  return { head, all: all() };
}

/** A header without a delimiter names a single column. */
function delimiterOf(head: string): string {
  const line = (/^[^\r\n]*/.exec(head)?.[0] ?? "").replace(/"[^"]*"/g, "");
  const counts = DELIMITERS.map(each => line.split(each).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
}

function newlinesIn(cell: string): number {
  return cell.split("\n").length - 1;
}
