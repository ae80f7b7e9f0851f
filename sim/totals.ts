import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { type BatchResult, sumOf } from "./batch.ts";
import type { Occasions } from "./simulate.ts";

/** The sum of all recorded runs, and the first seed of the next one. docs/guarantees.md quotes it. */
export interface Totals {
  readonly seeds: number;
  readonly requests: number;
  readonly violations: number;
  readonly nextSeed: number;
  /** The first seed whose occasions were counted. */
  readonly occasionsFrom: number;
  /** How often each law applied since then, by its title. */
  readonly occasions: Occasions;
}

const FILE = new URL("./totals.json", import.meta.url);
const DOCUMENT = new URL("../docs/guarantees.md", import.meta.url);

export function readTotals(): Totals {
  return JSON.parse(readFileSync(FILE, "utf8")) as Totals;
}

/** Adds a run. The file is replaced atomically. */
export function recordTotals({ seeds, requests, broken, occasions }: BatchResult): Totals {
  const old = readTotals();
  const totals: Totals = {
    seeds: old.seeds + seeds,
    requests: old.requests + requests,
    violations: old.violations + broken.length,
    nextSeed: old.nextSeed + seeds,
    occasionsFrom: old.occasionsFrom,
    occasions: sumOf(old.occasions, occasions),
  };
  const draft = new URL("./totals.json.new", import.meta.url);
  writeFileSync(draft, `${JSON.stringify(totals, undefined, 2)}\n`);
  renameSync(draft, FILE);
  quote(totals);
  return totals;
}

/** The sentence in docs/guarantees.md. */
export function totalsSentence({ seeds, requests, violations }: Totals): string {
  const [run, sent, broken] = [seeds, requests, violations].map(number);
  return `${run} seeds with ${sent} requests run so far; ${broken} law violation${broken === "1" ? "" : "s"}.`;
}

/** How often each law applied, the rarest one first: a table for docs/guarantees.md. */
export function occasionsTable({ occasions, occasionsFrom, nextSeed }: Totals): string {
  const seeds = `${number(occasionsFrom)} to ${number(nextSeed - 1)}`;
  const rows = Object.entries(occasions).sort(([, a], [, b]) => a - b);
  return [
    `| law | times that it applied in seeds ${seeds} |`,
    "|---|---|",
    ...rows.map(([title, count]) => `| ${title} | ${number(count)} |`),
  ].join("\n");
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

function quote(totals: Totals): void {
  const text = readFileSync(DOCUMENT, "utf8");
  writeFileSync(
    DOCUMENT,
    withBlock(withBlock(text, "totals", totalsSentence(totals)), "occasions", occasionsTable(totals)),
  );
}

/** Replaces what stands between the two comments with this name. */
function withBlock(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name} -->\n`, `\n<!-- /${name} -->`];
  const from = text.indexOf(begin) + begin.length;
  return text.slice(0, from) + content + text.slice(text.indexOf(end, from - 1));
}
