/**
 * The mutation check of core/ and gate/: `npm run mutate`, which changes one small thing at a time and expects a test
 * to notice.
 *
 *   --file PATH          only this file (again for more)
 *   --sample N --seed S  only so many, drawn by the seed
 *   --id ID              only this mutant (again for more)
 *   --workers N          so many processes at a time (2)
 *   --slow-ms N          leave out test files that take longer than this by themselves (20000)
 *   --list               print the mutants and try none
 *   --json               print one JSON document
 *
 * Exit code 1: a mutant survived that `justified.json` does not explain. 2: the request or that list is wrong.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { Baselines } from "./baseline.ts";
import { type Justified, problemsOf } from "./justified.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";
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
    list: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const all = sourcesOf("src/{core,limiter,breaker,sharing,gate}/**/*.ts").flatMap(file =>
  mutantsOf(file, readFileSync(resolve(root, file), "utf8")),
);
const justified: Justified = JSON.parse(readFileSync(resolve(import.meta.dirname, "justified.json"), "utf8"));
const chosen = choose(all);
const problems = problemsOf(justified, all);
for (const problem of problems) console.error(`justified.json: ${problem}`);
if (problems.length > 0 || chosen.length === 0) {
  if (chosen.length === 0) console.error("no mutant was chosen");
  process.exitCode = 2;
} else if (args.list) {
  console.log(args.json ? JSON.stringify(chosen, null, 2) : chosen.map(lineOf).join("\n"));
} else {
  await judge(chosen);
}

async function judge(mutants: readonly Mutant[]): Promise<void> {
  const baselines = new Baselines(root, count("slow-ms"));
  const isJustified = ({ id }: Mutant) => justified[id] !== undefined;
  const verdicts = await tryMutants(
    mutants.filter(mutant => !isJustified(mutant)),
    { root, baselines, stagesOf, workers: count("workers"), slackMs: 5000, onVerdict: progress },
  );
  const survivors = verdicts.filter(({ outcome }) => outcome === "survived");
  const timeOuts = verdicts.filter(({ outcome }) => outcome === "time-out").length;
  const killed = verdicts.length - survivors.length;
  const left = { justified: mutants.filter(isJustified).length, slowTests: await baselines.slow() };
  const percent = verdicts.length === 0 ? 100 : Math.floor((1000 * killed) / verdicts.length) / 10;
  if (args.json) {
    const sum = { tried: verdicts.length, of: all.length, killed, timeOuts, percent, ...left };
    console.log(JSON.stringify({ ...sum, survivors: survivors.map(({ mutant }) => mutant) }, null, 2));
  } else {
    for (const { mutant } of survivors) console.log(`survived  ${lineOf(mutant)}`);
    const justifiedToo = `${left.justified} justified and left out`;
    console.log(
      `${killed} of ${verdicts.length} killed (${timeOuts} by time-out), ${percent} %; ${justifiedToo}; ${all.length} mutants in all`,
    );
    for (const test of left.slowTests) console.log(`not asked, since it is slow: ${test}`);
  }
  if (survivors.length > 0) process.exitCode = 1;
}

function choose(mutants: readonly Mutant[]): readonly Mutant[] {
  const { file, id, sample } = args;
  const some = mutants.filter(mutant => (file?.includes(mutant.file) ?? true) && (id?.includes(mutant.id) ?? true));
  return sample === undefined ? some : sampleOf(some, count("sample"), count("seed"));
}

/** Its own test first; then every other one of these modules that runs the changed code. */
function stagesOf(file: string): readonly (readonly string[])[] {
  const own = file.replace(/\.ts$/, ".test.ts");
  const others = globSync("src/{core,limiter,breaker,sharing,gate}/**/*.test.ts", { cwd: root }).sort();
  const rest = others.filter(test => test !== own);
  return existsSync(resolve(root, own)) ? [[own], rest] : [rest];
}

function sourcesOf(pattern: string): readonly string[] {
  return globSync(pattern, { cwd: root })
    .filter(file => !file.endsWith(".test.ts"))
    .sort();
}

function count(name: "sample" | "seed" | "workers" | "slow-ms"): number {
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
