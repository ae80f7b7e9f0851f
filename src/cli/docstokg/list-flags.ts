import { closeSync, openSync, readSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import {
  formatOf,
  INPUT_FORMATS,
  type Input,
  type InputFormat,
  type InputOptions,
  inputsOfArguments,
  inputsOfFile,
  inputsOfStream,
} from "../../harvest/inputs/inputs.ts";
import { readProblem } from "../file-problems.ts";
import type { Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";

export function addListFlags(command: Command): void {
  command
    .option("-i, --input <file>", "file with works: lines, CSV, JSONL, BibTeX or RIS; - for stdin")
    .option("--input-format <format>", `${INPUT_FORMATS.join(", ")} (default: by file extension)`)
    .option("--column <name>", "CSV column or JSONL field with the identifiers (default: by name, such as doi or pmid)")
    .option("--strict", "reject the whole list if one line is invalid");
}

/** The works of the arguments and of `--input`; undefined if there are neither. */
export function listOf(args: readonly string[], flags: Flags, io: Io): AsyncIterable<Input> | undefined {
  const file = flags["input"] as string | undefined;
  const options = inputOptionsOf(flags);
  if (file === undefined && args.length === 0) return undefined;
  return (async function* () {
    yield* inputsOfArguments(args);
    if (file === "-") yield* inputsOfStream(io.stdin ?? emptyStream(), "stdin", options);
    else if (file !== undefined) yield* inputsOfFile(file, options);
  })();
}

function inputOptionsOf(flags: Flags): InputOptions {
  return { format: formatFlagOf(flags), column: flags["column"] as string | undefined };
}

/** The problem of `--input`, and of `--column` for a format without columns. */
export function inputFileProblems(flags: Flags): readonly (readonly [flag: string, message: string])[] {
  const file = flags["input"] as string | undefined;
  if (file === undefined) return [];
  const format = formatFlagOf(flags) ?? (file === "-" ? "lines" : formatOf(file));
  try {
    const found = file === "-" ? undefined : statSync(file);
    if (found?.isDirectory() === true) return [["--input", `${resolve(file)} is a folder; expected a file`]];
    // A pipe can be read only once, so only regular files are checked.
    const problem = found?.isFile() === true ? contentProblem(file, format) : undefined;
    if (problem !== undefined) return [["--input", `${resolve(file)} ${problem}`]];
  } catch (error) {
    return [["--input", readProblem(file, error)]];
  }
  if (flags["column"] === undefined || format === "csv" || format === "jsonl") return [];
  return [["--column", `has no effect on ${format} input; only csv and jsonl have columns`]];
}

/**
 * Throws a ConfigError for a CSV file without the column of the identifiers, before the run is recorded. A pipe can be
 * read only once, so its header is checked when the works are listed.
 */
export async function checkHeader(flags: Flags): Promise<void> {
  const file = flags["input"] as string | undefined;
  if (file === undefined || file === "-" || !statSync(file).isFile()) return;
  const inputs = inputsOfFile(file, inputOptionsOf(flags));
  await inputs.next();
  await inputs.return(undefined);
}

const NOT_TEXT =
  "is not a text file (it contains NUL bytes); save a spreadsheet as CSV, and text as UTF-8 or as UTF-16 with a byte order mark";
const OTHER_FORMATS = "one identifier on each line, or CSV, JSONL (one object on each line), BibTeX or RIS";
const START_BYTES = 4096;

/**
 * Why a file is no list. Without this check, each line would be reported as an invalid identifier, and every URL in a
 * JSON or HTML document, such as the address of a record in a database, would be downloaded.
 */
function contentProblem(file: string, format: InputFormat): string | undefined {
  const start = startOf(file);
  const mark = start.subarray(0, 2).toString("hex");
  if (mark === "fffe" || mark === "feff") return undefined;
  if (start.includes(0)) return NOT_TEXT;
  if (format !== "lines") return undefined;
  const text = start.toString("utf8");
  if (/^\uFEFF?\s*(?:\[\s*)?\{\s*"/.test(text)) return `is a JSON document; expected ${OTHER_FORMATS}`;
  return /^\uFEFF?\s*<(?:\?xml|!doctype|html)\b/i.test(text)
    ? `is an HTML or XML document; expected ${OTHER_FORMATS}`
    : undefined;
}

function startOf(file: string): Buffer {
  const start = Buffer.alloc(START_BYTES);
  const descriptor = openSync(file, "r");
  try {
    return start.subarray(0, readSync(descriptor, start));
  } finally {
    closeSync(descriptor);
  }
}

function formatFlagOf(flags: Flags): InputFormat | undefined {
  const format = flags["inputFormat"] as string | undefined;
  if (format === undefined || (INPUT_FORMATS as readonly string[]).includes(format)) return format as InputFormat;
  throw usageError("--input-format", `${JSON.stringify(format)} is not one of ${INPUT_FORMATS.join(", ")}`);
}

async function* emptyStream(): AsyncGenerator<string> {
  yield "";
}
