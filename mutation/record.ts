/** The results of all recorded trials, by source file: `npm run mutate -- --record` continues where the last run ended. */
import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { type Mutant, strippedOf } from "./mutants.ts";
import type { MutantResult } from "./try-mutants.ts";

/** The results of the mutants of one file. */
export interface FileRecord {
  /** A hash of the code without its types and comments. If the code has changed, the file is tried again. */
  readonly code: string;
  readonly tried: number;
  readonly killed: number;
  /** Those of `killed` whose tests did not end in time. */
  readonly timeOuts: number;
  /** Mutants that no test has killed and `justified.json` does not name, by their id. */
  readonly survivors: Readonly<Record<string, string>>;
}

/** Keyed by the path of the file. */
export type MutationRecord = Readonly<Record<string, FileRecord>>;

export interface Source {
  readonly file: string;
  readonly text: string;
}

const FILE = new URL("./record.json", import.meta.url);
const DOCUMENT = new URL("../docs/guarantees.md", import.meta.url);

export function readRecord(): MutationRecord {
  return JSON.parse(readFileSync(FILE, "utf8")) as MutationRecord;
}

/** Replaces the record atomically, in the order of the paths, and its sentence in docs/guarantees.md. */
export function writeRecord(record: MutationRecord, sources: readonly Source[]): void {
  const known = new Set(sources.map(({ file }) => file));
  const entries = Object.entries(record).filter(([file]) => known.has(file));
  const sorted = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  const draft = new URL("./record.json.new", import.meta.url);
  writeFileSync(draft, `${JSON.stringify(sorted, undefined, 2)}\n`);
  renameSync(draft, FILE);
  const text = readFileSync(DOCUMENT, "utf8");
  const block = /(?<=<!-- mutants -->\n).*(?=\n<!-- \/mutants -->)/;
  writeFileSync(DOCUMENT, text.replace(block, recordSentence(sorted, sources.length)));
}

/** The sources whose code was never tried, or has changed since. */
export function untried(record: MutationRecord, sources: readonly Source[]): readonly Source[] {
  return sources.filter(({ file, text }) => record[file]?.code !== codeHash(text));
}

export function fileRecord(text: string, results: readonly MutantResult[]): FileRecord {
  const survivors = results.filter(({ outcome }) => outcome === "survived");
  return {
    code: codeHash(text),
    tried: results.length,
    killed: results.length - survivors.length,
    timeOuts: results.filter(({ outcome }) => outcome === "time-out").length,
    survivors: Object.fromEntries(survivors.map(({ mutant }) => [mutant.id, changeText(mutant)])),
  };
}

/** The record of a file after its survivors were tried again; mutants that are justified since then no longer count. */
export function retried(known: FileRecord, results: readonly MutantResult[]): FileRecord {
  const again = fileRecord("", results);
  return {
    code: known.code,
    tried: known.killed + again.tried,
    killed: known.killed + again.killed,
    timeOuts: known.timeOuts + again.timeOuts,
    survivors: again.survivors,
  };
}

/** What docs/guarantees.md says about the record. */
export function recordSentence(record: MutationRecord, files: number): string {
  const records = Object.values(record);
  const sum = (of: (file: FileRecord) => number) => records.reduce((total, file) => total + of(file), 0);
  const [tried, killed, timeOuts] = [sum(file => file.tried), sum(file => file.killed), sum(file => file.timeOuts)];
  const percent = tried === 0 ? 0 : Math.floor((1000 * killed) / tried) / 10;
  const [all, dead, late] = [tried, killed, timeOuts].map(value => value.toLocaleString("en-US"));
  return `${all} mutants of ${records.length} of ${files} files tried; ${dead} killed (${late} of them by a timeout), ${percent} %.`;
}

function changeText({ line, before, after }: Mutant): string {
  const short = (text: string) => text.replace(/\s+/g, " ").slice(0, 60);
  return `line ${line}: ${short(before)} -> ${short(after)}`;
}

function codeHash(text: string): string {
  // A change of a comment changes no mutant.
  const code = strippedOf(text)
    .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "")
    .replace(/\s+/g, " ")
    .trim();
  return createHash("sha256").update(code).digest("hex").slice(0, 12);
}
