import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { BatchResult } from "./batch.ts";

/** The sum of all recorded runs, and the first seed of the next one. docs/guarantees.md quotes it. */
export interface Totals {
  readonly seeds: number;
  readonly requests: number;
  readonly violations: number;
  readonly nextSeed: number;
}

const FILE = new URL("./totals.json", import.meta.url);
const DOCUMENT = new URL("../docs/guarantees.md", import.meta.url);

export function readTotals(): Totals {
  return JSON.parse(readFileSync(FILE, "utf8")) as Totals;
}

/** Adds a run. The file is replaced atomically. */
export function recordTotals({ seeds, requests, broken }: BatchResult): Totals {
  const old = readTotals();
  const totals: Totals = {
    seeds: old.seeds + seeds,
    requests: old.requests + requests,
    violations: old.violations + broken.length,
    nextSeed: old.nextSeed + seeds,
  };
  const draft = new URL("./totals.json.new", import.meta.url);
  writeFileSync(draft, `${JSON.stringify(totals, undefined, 2)}\n`);
  renameSync(draft, FILE);
  quote(totals);
  return totals;
}

/** The sentence in docs/guarantees.md. */
export function totalsSentence({ seeds, requests, violations }: Totals): string {
  const [run, sent, broken] = [seeds, requests, violations].map(value => value.toLocaleString("en-US"));
  return `${run} seeds with ${sent} requests run so far; ${broken} law violation${broken === "1" ? "" : "s"}.`;
}

function quote(totals: Totals): void {
  const text = readFileSync(DOCUMENT, "utf8");
  const block = /(?<=<!-- totals -->\n).*(?=\n<!-- \/totals -->)/;
  writeFileSync(DOCUMENT, text.replace(block, totalsSentence(totals)));
}
