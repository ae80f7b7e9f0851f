/**
 * Mutation testing of core/, limiter/, breaker/, sharing/ and gate/: `npm run mutate` makes one small change at a time
 * and expects a test to fail.
 *
 *   --file PATH          only the mutants of this file (repeatable)
 *   --id ID              only this mutant (repeatable)
 *   --sample N --seed S  a random sample of N mutants (seed 1)
 *   --workers N          processes at a time (1)
 *   --budget-ms N        run the likeliest tests of a mutant until they have taken N ms (5000)
 *   --record             try the files that are not in `record.json` with their present code, and add them;
 *                        with --file, only this file, even if it is there
 *   --survivors          with --record: only try the survivors on record again
 *   --minutes N          with --record: begin no further file after N minutes
 *   --list               print the mutants without running tests
 *   --json               print one JSON document
 *
 * Exit code 1: a mutant survived that is not in `justified.json`. 2: an option or `justified.json` is invalid.
 * 130: ended by Ctrl-C.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { scriptArguments } from "../scripts/script-arguments.ts";
import { type Justified, problemsOf } from "./justified.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";
import { Progress } from "./progress.ts";
import { type FileRecord, fileRecord, readRecord, recordSentence, retried, untried, writeRecord } from "./record.ts";
import { sampleOf } from "./sample.ts";
import { type MutantResult, MutantTrials } from "./try-mutants.ts";

const root = resolve(import.meta.dirname, "..");
const { values: args } = scriptArguments({
  options: {
    file: { type: "string", multiple: true },
    id: { type: "string", multiple: true },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    workers: { type: "string", default: "1" },
    "budget-ms": { type: "string", default: "5000" },
    record: { type: "boolean", default: false },
    survivors: { type: "boolean", default: false },
    minutes: { type: "string", default: "1000000" },
    list: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const MODULES = "src/{core,limiter,breaker,sharing,gate}/**/*";
/** A test may need a minute on a busy machine. */
const HANG_MS = 300_000;
const sources = globSync(`${MODULES}.ts`, { cwd: root })
  .filter(file => !file.endsWith(".test.ts"))
  .sort()
  .map(file => ({ file, text: readFileSync(resolve(root, file), "utf8") }));
const testFiles = globSync(`${MODULES}.test.ts`, { cwd: root }).sort();
const all = sources.flatMap(({ file, text }) => mutantsOf(file, text));
const justified: Justified = JSON.parse(readFileSync(resolve(import.meta.dirname, "justified.json"), "utf8"));
const selected = select(all);
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
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

if (stop.signal.aborted) process.exitCode = 130;

/** Written after each file, so that an interrupted run loses only the trials of one file. */
async function recordAll(): Promise<void> {
  const record = readRecord();
  const isNew = new Set(untried(record, sources).map(({ file }) => file));
  const files = sources.filter(({ file }) =>
    args.survivors
      ? !isNew.has(file) && Object.keys(record[file]?.survivors ?? {}).length > 0 && (args.file?.includes(file) ?? true)
      : (args.file?.includes(file) ?? isNew.has(file)),
  );
  const tasks = files.map(({ file, text }) => {
    const known = args.survivors ? record[file] : undefined;
    const mutants = all.filter(({ file: of, id }) => of === file && (known === undefined || id in known.survivors));
    return { file, text, known, mutants: mutants.filter(mutant => !isJustified(mutant)) };
  });
  const progress = new Progress(tasks.map(({ mutants }) => mutants.length));
  const startMs = performance.now();
  await tryFiles(tasks, ({ text, file, known }, results) => {
    const result: FileRecord = known === undefined ? fileRecord(text, results) : retried(known, results);
    writeRecord({ ...readRecord(), [file]: result }, sources);
    console.log(`${file}: ${recordSentence({ [file]: result }, 1)} ${progress.after(results.length)}`);
    return performance.now() - startMs < count("minutes") * 60_000;
  });
  console.log(recordSentence(readRecord(), sources.length));
}

async function tryAll(mutants: readonly Mutant[]): Promise<void> {
  const results: MutantResult[] = [];
  const byFile = Map.groupBy(
    mutants.filter(mutant => !isJustified(mutant)),
    ({ file }) => file,
  );
  const tasks = [...byFile].map(([file, some]) => ({ file, mutants: some }));
  await tryFiles(tasks, (_, some) => results.push(...some) > 0);
  const survivors = results.filter(({ outcome }) => outcome === "survived");
  const timeOuts = results.filter(({ outcome }) => outcome === "time-out").length;
  const killed = results.length - survivors.length;
  const percent = results.length === 0 ? 100 : Math.floor((1000 * killed) / results.length) / 10;
  const skipped = mutants.filter(isJustified).length;
  if (args.json) {
    const sum = { tried: results.length, of: all.length, killed, timeOuts, percent, justified: skipped };
    console.log(JSON.stringify({ ...sum, survivors: survivors.map(({ mutant }) => mutant) }, null, 2));
  } else {
    for (const { mutant } of survivors) console.log(`survived  ${lineOf(mutant)}`);
    console.log(
      `${killed} of ${results.length} killed (${timeOuts} by time-out), ${percent} %; ${skipped} justified and skipped; ${all.length} mutants in total`,
    );
  }
  if (survivors.length > 0) process.exitCode = 1;
}

/** Each process takes the next file. `onFile` gets complete results, and returns false to begin no further file. */
async function tryFiles<Task extends { readonly file: string; readonly mutants: readonly Mutant[] }>(
  tasks: readonly Task[],
  onFile: (task: Task, results: readonly MutantResult[]) => boolean,
): Promise<void> {
  const left = [...tasks];
  const work = async () => {
    const trials = new MutantTrials({
      root,
      mutated: sources.map(({ file }) => file),
      budgetMs: count("budget-ms"),
      hangMs: HANG_MS,
      stagesOf,
      onResult: showResult,
    });
    stop.signal.addEventListener("abort", () => trials.close());
    try {
      for (let task = left.shift(); task !== undefined && !stop.signal.aborted; task = left.shift()) {
        const results = await trials.try(task.file, task.mutants);
        if (!stop.signal.aborted && !onFile(task, results)) left.length = 0;
      }
    } finally {
      trials.close();
    }
  };
  await Promise.all(Array.from({ length: count("workers") }, work));
}

function isJustified({ id }: Mutant): boolean {
  return justified[id] !== undefined;
}

function select(mutants: readonly Mutant[]): readonly Mutant[] {
  const { file, id, sample } = args;
  const some = mutants.filter(mutant => (file?.includes(mutant.file) ?? true) && (id?.includes(mutant.id) ?? true));
  return sample === undefined ? some : sampleOf(some, count("sample"), count("seed"));
}

/** The test of the file first, then those of its folder, then those of the other modules. */
function stagesOf(file: string): readonly (readonly string[])[] {
  const own = file.replace(/\.ts$/, ".test.ts");
  const isNear = (test: string) => dirname(test) === dirname(file);
  const near = testFiles.filter(test => test !== own && isNear(test));
  const far = testFiles.filter(test => !isNear(test));
  return [existsSync(resolve(root, own)) ? [own] : [], near, far];
}

function count(name: "sample" | "seed" | "workers" | "budget-ms" | "minutes"): number {
  const value = Number(args[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`--${name} must be a whole number above 0, not ${args[name]}`);
  process.exit(2);
}

function lineOf({ id, file, line, before, after }: Mutant): string {
  const short = (text: string) => text.replace(/\s+/g, " ").slice(0, 90);
  return `${id}  ${file}:${line}  ${short(before)}  ->  ${short(after)}`;
}

function showResult({ mutant, outcome, by }: MutantResult): void {
  const isShown = !args.json && (!args.record || outcome === "survived");
  if (isShown) console.error(`${outcome.padEnd(8)}  ${lineOf(mutant)}${by === undefined ? "" : `  (${by})`}`);
}
