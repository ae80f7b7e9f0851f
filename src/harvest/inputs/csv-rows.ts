import { CsvError, parse } from "csv-parse";

export interface CsvRow {
  /** The line on which it begins, from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

export interface CsvProblem {
  readonly line: number;
  readonly message: string;
}

/** The first line decides which character separates the cells; a file without any has one column. */
const HEADER_CHARS_MAX = 65_536;
const DELIMITERS = [",", "\t", ";"];

/**
 * The rows, the header among them. A row longer than `charsMax` ends the reading, because what comes behind a quote
 * that is never closed cannot be told from what is inside.
 */
export async function* csvRows(texts: AsyncIterable<string>, charsMax: number): AsyncGenerator<CsvRow | CsvProblem> {
  const { head, all } = await peeked(texts);
  let rows: CsvRow[] = [];
  let linesRead = 0;
  const parser = parse({
    delimiter: delimiterOf(head),
    record_delimiter: ["\r\n", "\n", "\r"],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: charsMax,
    // Rows are taken here and not from the stream, which forgets those it still holds when it meets an error.
    on_record(record: string[], { lines }) {
      rows.push({ line: lines - record.reduce((sum, cell) => sum + newlinesIn(cell), 0), cells: record });
      linesRead = lines;
      return undefined;
    },
  });
  // Whoever writes is told of an error as well; an event that nobody listens to would end the process.
  parser.on("error", () => undefined);
  try {
    let error: Error | undefined;
    for await (const text of all) {
      error = await outcomeOf(done => parser.write(text, done));
      yield* rows;
      rows = [];
      if (error !== undefined) break;
    }
    error ??= await outcomeOf(done => parser.end(done));
    yield* rows;
    if (error !== undefined) yield { line: linesRead + 1, message: messageOf(error, charsMax) };
  } finally {
    parser.destroy();
  }
}

function outcomeOf(act: (done: (error?: Error | null) => void) => void): Promise<Error | undefined> {
  return new Promise(resolve => act(error => resolve(error ?? undefined)));
}

function messageOf(error: Error, charsMax: number): string {
  const rest = "nothing behind it was read";
  const code = error instanceof CsvError ? error.code : undefined;
  if (code === "CSV_MAX_RECORD_SIZE")
    return `a row of more than ${charsMax} characters, for want of a closing quote perhaps; ${rest}`;
  if (code === "CSV_QUOTE_NOT_CLOSED") return `a quote that is opened and never closed; ${rest}`;
  return `${error.message}; ${rest}`;
}

async function peeked(texts: AsyncIterable<string>): Promise<{ head: string; all: AsyncGenerator<string> }> {
  const iterator = texts[Symbol.asyncIterator]();
  let head = "";
  let isOver = false;
  while (!isOver && head.length < HEADER_CHARS_MAX && !/[\r\n]/.test(head)) {
    const next = await iterator.next();
    isOver = next.done === true;
    head += next.done === true ? "" : next.value;
  }
  async function* all(): AsyncGenerator<string> {
    yield head;
    try {
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  }
  return { head, all: all() };
}

function delimiterOf(head: string): string {
  const line = (/^[^\r\n]*/.exec(head)?.[0] ?? "").replace(/"[^"]*"/g, "");
  const counts = DELIMITERS.map(each => line.split(each).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
}

function newlinesIn(cell: string): number {
  return cell.split("\n").length - 1;
}
