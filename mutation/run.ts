/**
 * Mutation testing of core/, limiter/, breaker/, sharing/ and gate/: `npm run mutate` makes one small change at a time
 * and expects a test to fail.
 *
 *   --file PATH          only the mutants of this file (repeatable)
 *   --id ID              only this mutant (repeatable)
 *   --sample N --seed S  a random sample of N mutants (seed 1)
 *   --workers N          processes at a time (2)
 *   --slow-ms N          skip test files that take longer than N ms (20000)
 *   --record             try the files that are not in `record.json` with their present code, and add them
 *   --minutes N          with --record: begin no further file after N minutes
 *   --list               print the mutants without running tests
 *   --json               print one JSON document
 *
 * Exit code 1: a mutant survived that is not in `justified.json`. 2: an option or `justified.json` is invalid.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { Baselines } from "./baseline.ts";
import { type Justified, problemsOf } from "./justified.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";
import { fileRecord, readRecord, recordSentence, type Source, untried, writeRecord } from "./record.ts";
import { sampleOf } from "./sample.ts";
import { type MutantResult, tryMutants } from "./try-mutants.ts";

const root = resolve(import.meta.dirname, "..");
const { values: args } = parseArgs({
  options: {
    file: { type: "string", multiple: true },
    id: { type: "string", multiple: true },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    workers: { type: "string", default: "2" },
    "slow-ms": { type: "string", default: "20000" },
    record: { type: "boolean", default: false },
    minutes: { type: "string", default: "1000000" },
    list: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const sources = sourcesOf("src/{core,limiter,breaker,sharing,gate}/**/*.ts");
const all = sources.flatMap(({ file, text }) => mutantsOf(file, text));
const justified: Justified = JSON.parse(readFileSync(resolve(import.meta.dirname, "justified.json"), "utf8"));
const selected = select(all);
const problems = problemsOf(justified, all);
for (const problem of problems) console.error(`justified.json: ${problem}`);
if (problems.length > 0 || selected.length === 0) {
  if (selected.length === 0) console.error("no mutant selected");
  process.exitCode = 2;
} else if (args.list) {
  console.log(args.json ? JSON.stringify(selected, null, 2) : selected.map(lineOf).join("\n"));
} else if (args.record) {
  await recordAll();
} else {
  await tryAll(selected);
}

/** Written after each file, so that an interrupted run loses only the trials of one file. */
async function recordAll(): Promise<void> {
  const baselines = new Baselines(root, count("slow-ms"));
  const startMs = performance.now();
  for (const { file, text } of untried(readRecord(), sources)) {
    if (performance.now() - startMs > count("minutes") * 60_000) break;
    const results = await tried(
      all.filter(mutant => mutant.file === file),
      baselines,
    );
    writeRecord({ ...readRecord(), [file]: fileRecord(text, results) }, sources);
    console.log(`${file}: ${recordSentence({ [file]: fileRecord(text, results) }, 1)}`);
  }
  console.log(recordSentence(readRecord(), sources.length));
}

async function tryAll(mutants: readonly Mutant[]): Promise<void> {
  const baselines = new Baselines(root, count("slow-ms"));
  const results = await tried(mutants, baselines);
  const survivors = results.filter(({ outcome }) => outcome === "survived");
  const timeOuts = results.filter(({ outcome }) => outcome === "time-out").length;
  const killed = results.length - survivors.length;
  const left = { justified: mutants.filter(isJustified).length, slowTests: await baselines.slow() };
  const percent = results.length === 0 ? 100 : Math.floor((1000 * killed) / results.length) / 10;
  if (args.json) {
    const sum = { tried: results.length, of: all.length, killed, timeOuts, percent, ...left };
    console.log(JSON.stringify({ ...sum, survivors: survivors.map(({ mutant }) => mutant) }, null, 2));
  } else {
    for (const { mutant } of survivors) console.log(`survived  ${lineOf(mutant)}`);
    const justifiedText = `${left.justified} justified and skipped`;
    console.log(
      `${killed} of ${results.length} killed (${timeOuts} by time-out), ${percent} %; ${justifiedText}; ${all.length} mutants in total`,
    );
    for (const test of left.slowTests) console.log(`skipped, slower than --slow-ms: ${test}`);
  }
  if (survivors.length > 0) process.exitCode = 1;
}

function isJustified({ id }: Mutant): boolean {
  return justified[id] !== undefined;
}

function tried(mutants: readonly Mutant[], baselines: Baselines): Promise<readonly MutantResult[]> {
  const options = { root, baselines, stagesOf, workers: count("workers"), slackMs: 5000, onResult: progress };
  return tryMutants(
    mutants.filter(mutant => !isJustified(mutant)),
    options,
  );
}

function select(mutants: readonly Mutant[]): readonly Mutant[] {
  const { file, id, sample } = args;
  const some = mutants.filter(mutant => (file?.includes(mutant.file) ?? true) && (id?.includes(mutant.id) ?? true));
  return sample === undefined ? some : sampleOf(some, count("sample"), count("seed"));
}

/** The test of the file first, then all other tests of these modules that run the changed code. */
function stagesOf(file: string): readonly (readonly string[])[] {
  const own = file.replace(/\.ts$/, ".test.ts");
  const others = globSync("src/{core,limiter,breaker,sharing,gate}/**/*.test.ts", { cwd: root }).sort();
  const rest = others.filter(test => test !== own);
  return existsSync(resolve(root, own)) ? [[own], rest] : [rest];
}

function sourcesOf(pattern: string): readonly Source[] {
  return globSync(pattern, { cwd: root })
    .filter(file => !file.endsWith(".test.ts"))
    .sort()
    .map(file => ({ file, text: readFileSync(resolve(root, file), "utf8") }));
}

function count(name: "sample" | "seed" | "workers" | "slow-ms" | "minutes"): number {
  const value = Number(args[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`--${name} must be a whole number above 0, not ${args[name]}`);
  process.exit(2);
}

function lineOf({ id, file, line, before, after }: Mutant): string {
  const short = (text: string) => text.replace(/\s+/g, " ").slice(0, 90);
  return `${id}  ${file}:${line}  ${short(before)}  ->  ${short(after)}`;
}

function progress({ mutant, outcome, by }: MutantResult): void {
  if (!args.json) console.error(`${outcome.padEnd(8)}  ${lineOf(mutant)}${by === undefined ? "" : `  (${by})`}`);
}
