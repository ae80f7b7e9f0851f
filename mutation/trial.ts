/**
 * Tries the mutants of one file, with the tests that reach them.
 *
 * A mutant that runs while modules are imported, or whose result a module keeps, needs modules of its own. All others
 * share their modules, so one mutant might change the state that the next one finds: the test that kills a mutant must
 * pass without it.
 */
import type { CollectedTest } from "./collected-tests.ts";
import type { Measurement } from "./measurement.ts";
import { runTest } from "./run-test.ts";
import { activate, deactivate } from "./switch.ts";
import type { TrialModules } from "./trial-modules.ts";

export interface Outcome {
  readonly outcome: "killed" | "time-out" | "survived";
  /** The test that failed. */
  readonly by?: string;
}

/** Tests of one file that run together. */
interface Run {
  readonly measurement: Measurement;
  /** Their positions in the file. */
  readonly tests: readonly number[];
  /** The modules are imported with the mutant. */
  readonly isFresh: boolean;
  readonly tookMs: number;
}

/** A test with a mutant may take this many times its usual steps, and some more. */
const STEPS_FACTOR = 20;
const STEPS_MORE = 100_000;
const LIMIT_MS = 20_000;

export class Trials {
  readonly #file: string;
  readonly #modules: TrialModules;
  readonly #budgetMs: number;
  /** How many mutants each test has killed. */
  readonly #kills = new Map<string, number>();

  /** A mutant survives when tests that need `budgetMs` have passed, even if others are left. */
  constructor(file: string, modules: TrialModules, budgetMs: number) {
    this.#file = file;
    this.#modules = modules;
    this.#budgetMs = budgetMs;
  }

  /** A later stage runs only if the tests of the earlier ones have passed. */
  async try(index: number, stages: readonly (() => Promise<readonly Measurement[]>)[]): Promise<Outcome> {
    let leftMs = this.#budgetMs;
    for (const measurementsOf of stages) {
      const measurements = await measurementsOf();
      const runs = measurements.flatMap(one => this.#runsOf(one, index));
      for (const run of runs.sort((a, b) => this.#rankOf(a) - this.#rankOf(b))) {
        if (run.tookMs > leftMs) continue;
        leftMs -= run.tookMs;
        const killed = await this.#run(run, index);
        if (killed === undefined) continue;
        this.#kills.set(keyOf(run), (this.#kills.get(keyOf(run)) ?? 0) + 1);
        return killed;
      }
    }
    return { outcome: "survived" };
  }

  #runsOf(measurement: Measurement, index: number): readonly Run[] {
    const { atImport, isRepeatable } = measurement;
    const atImportHere = atImport[this.#file] ?? [];
    const isStatic = atImportHere.includes(index);
    const isUser =
      measurement.test === this.#file.replace(/\.ts$/, ".test.ts") ||
      atImportHere.length === this.#modules.sizeOf(this.#file);
    const using = measurement.tests
      .map(({ tookMs, reached, reachedOnce }, number) => {
        const isOnce = reachedOnce[this.#file]?.includes(index) ?? false;
        return { number, tookMs, isOnce, reached: reached[this.#file] };
      })
      // A constant has an effect where other code of its file runs, or anywhere if the file has only constants.
      .filter(({ reached }) => (isStatic ? isUser || reached !== undefined : reached?.includes(index)))
      .sort((a, b) => a.tookMs - b.tookMs);
    if (using.length === 0) return [];
    if (!isStatic && isRepeatable)
      return using.map(({ number, tookMs, isOnce }) => ({ measurement, tests: [number], isFresh: isOnce, tookMs }));
    const tookMs = using.reduce((sum, test) => sum + test.tookMs, 0);
    return [{ measurement, tests: using.map(({ number }) => number), isFresh: true, tookMs }];
  }

  /** Cheap tests first, and those that have killed mutants of the file. */
  #rankOf(run: Run): number {
    return (run.tookMs + 1) / (1 + (this.#kills.get(keyOf(run)) ?? 0));
  }

  async #run(run: Run, index: number): Promise<Outcome | undefined> {
    const number = this.#modules.numberOf(this.#file, index);
    if (run.isFresh) {
      const tests = await this.#importWith(number, run.measurement.test);
      return tests === undefined ? { outcome: "killed", by: "import" } : runTests(run, tests, number);
    }
    for (let isSecond = false; ; isSecond = true) {
      const tests = await this.#modules.shared(run.measurement.test);
      const killed = await runTests(run, tests, number);
      if (killed === undefined) return undefined;
      if ((await runTests(run, tests)) === undefined) return killed;
      // The state of the modules is no longer the original one, because of this mutant or of one before.
      this.#modules.renew();
      if (isSecond) return killed;
    }
  }

  /** Undefined if the import fails. */
  async #importWith(number: number, test: string): Promise<readonly CollectedTest[] | undefined> {
    activate(number);
    try {
      return await this.#modules.load(test);
    } catch {
      return undefined;
    } finally {
      deactivate();
    }
  }
}

async function runTests(
  { measurement, tests: numbers }: Run,
  tests: readonly CollectedTest[],
  mutant?: number,
): Promise<Outcome | undefined> {
  if (mutant !== undefined) activate(mutant);
  try {
    for (const number of numbers) {
      const [test, usual] = [tests[number], measurement.tests[number]];
      if (test === undefined || usual === undefined) continue;
      const { failure } = await runTest(test, STEPS_FACTOR * usual.steps + STEPS_MORE, LIMIT_MS + 10 * usual.tookMs);
      if (failure !== undefined) return { outcome: failure === "failed" ? "killed" : failure, by: test.name };
    }
    return undefined;
  } finally {
    deactivate();
  }
}

function keyOf({ measurement, tests }: Run): string {
  return `${measurement.test} ${tests.length === 1 ? tests[0] : ""}`;
}
