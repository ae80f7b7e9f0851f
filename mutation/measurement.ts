/** Which mutants each test of a file reaches, measured without a change and kept in `node_modules/.cache/mutation`. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { CollectedTest } from "./collected-tests.ts";
import { runTest, type TestRun } from "./run-test.ts";
import { measured } from "./switch.ts";
import type { TrialModules } from "./trial-modules.ts";

/** Slower tests run only once: that they can be repeated is assumed. */
const SLOW_MS = 2000;

/** The positions of mutants among those of their file, by file. */
type Reached = Readonly<Record<string, readonly number[]>>;

export interface MeasuredTest {
  readonly name: string;
  readonly tookMs: number;
  readonly steps: number;
  readonly reached: Reached;
  /** Those of `reached` that the test does not reach when it runs again, because a module has kept a result. */
  readonly reachedOnce: Reached;
}

/** The measurement of a test file. */
export interface Measurement {
  readonly test: string;
  /** A hash of all files of the project that the test file imports. */
  readonly hash: string;
  readonly files: readonly string[];
  /** Reached while the modules are imported. */
  readonly atImport: Reached;
  /** False if a test that runs twice fails the second time. */
  readonly isRepeatable: boolean;
  readonly tests: readonly MeasuredTest[];
}

export async function measurementOf(test: string, root: string, modules: TrialModules): Promise<Measurement> {
  const folder = join(root, "node_modules/.cache/mutation");
  const path = join(folder, `${test.replaceAll("/", "+")}.json`);
  if (existsSync(path)) {
    const known: Measurement = JSON.parse(readFileSync(path, "utf8"));
    if (known.hash === hashOf(known.files, root)) return known;
  }
  const measurement = await measure(test, root, modules);
  mkdirSync(folder, { recursive: true });
  // Another process may read it now.
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(measurement));
  renameSync(draft, path);
  return measurement;
}

async function measure(test: string, root: string, modules: TrialModules): Promise<Measurement> {
  const generation = modules.fresh();
  let tests: readonly CollectedTest[] = [];
  const atImport = await measured(async () => {
    tests = await modules.load(test, generation);
  });
  if (tests.length === 0) throw new Error(`${test} has no test`);
  const firstRuns: { readonly marks: readonly number[]; readonly run: TestRun }[] = [];
  for (const one of tests) {
    const first = await measuredRun(one);
    if (first.run.failure !== undefined) throw new Error(`${test} fails without any change: ${one.name}`);
    firstRuns.push(first);
  }
  let isRepeatable = true;
  const measuredTests: MeasuredTest[] = [];
  for (const [index, one] of tests.entries()) {
    const { marks, run } = firstRuns[index] as (typeof firstRuns)[number];
    const again = run.tookMs > SLOW_MS ? { marks, run } : await measuredRun(one);
    isRepeatable &&= again.run.failure === undefined;
    const left = new Set(again.marks);
    measuredTests.push({
      name: one.name,
      tookMs: again.run.tookMs,
      steps: run.steps,
      reached: modules.byFile(marks),
      reachedOnce: modules.byFile(marks.filter(mutant => !left.has(mutant))),
    });
  }
  const files = modules.filesOf(generation);
  const hash = hashOf(files, root);
  return { test, hash, files, atImport: modules.byFile(atImport), isRepeatable, tests: measuredTests };
}

async function measuredRun(test: CollectedTest): Promise<{ marks: readonly number[]; run: TestRun }> {
  let run: TestRun | undefined;
  const marks = await measured(async () => {
    run = await runTest(test);
  });
  return { marks, run: run as TestRun };
}

/** Includes the mutator, whose changes have other positions after a change of it. */
function hashOf(files: readonly string[], root: string): string {
  const hash = createHash("sha256");
  const tool = ["mutants.ts", "instrumented.ts", "measurement.ts"].map(name => join(import.meta.dirname, name));
  for (const path of [...tool, ...files.map(file => resolve(root, file))])
    hash.update(existsSync(path) ? readFileSync(path) : "").update("\0");
  return hash.digest("hex");
}
