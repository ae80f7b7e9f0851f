/** Runs each test file on the unchanged sources, for its duration and the code it covers. */
import { resolve } from "node:path";
import type { Mutant } from "./mutants.ts";
import { runTrial } from "./run-trial.ts";
import type { FileCoverage } from "./trial.ts";

export interface Baseline {
  readonly test: string;
  readonly tookMs: number;
  /** Takes longer than `--slow-ms`, so it is not run for mutants. */
  readonly isSlow: boolean;
  readonly coverage: readonly FileCoverage[];
}

export class Baselines {
  readonly #root: string;
  readonly #slowMs: number;
  readonly #known = new Map<string, Promise<Baseline>>();

  constructor(root: string, slowMs: number) {
    this.#root = root;
    this.#slowMs = slowMs;
  }

  /** The tests that run the changed code, fastest first. */
  async reaching(mutant: Mutant, tests: readonly string[]): Promise<readonly Baseline[]> {
    const left = tests.values();
    const work = async () => {
      for (const test of left) await this.#of(test);
    };
    // Two at a time, like the trials. Concurrent calls share the measurements.
    await Promise.all([work(), work()]);
    const all = await Promise.all(tests.map(test => this.#of(test)));
    return all
      .filter(({ isSlow, coverage }) => !isSlow && reaches(coverage, resolve(this.#root, mutant.file), mutant.start))
      .sort((a, b) => a.tookMs - b.tookMs);
  }

  async slow(): Promise<readonly string[]> {
    const all = await Promise.all(this.#known.values());
    return all.filter(({ isSlow }) => isSlow).map(({ test }) => test);
  }

  #of(test: string): Promise<Baseline> {
    const known = this.#known.get(test) ?? this.#measure(test);
    this.#known.set(test, known);
    return known;
  }

  async #measure(test: string): Promise<Baseline> {
    const result = await runTrial({ tests: [resolve(this.#root, test)], coverageOf: this.#root }, this.#slowMs);
    if (result.kind === "time-out") return { test, tookMs: this.#slowMs, isSlow: true, coverage: [] };
    if (result.kind === "failed") throw new Error(`${test} fails without any change: ${result.by}`);
    if (result.report.passed === 0) throw new Error(`${test} has no test that passes`);
    return { test, tookMs: result.tookMs, isSlow: false, coverage: result.report.coverage ?? [] };
  }
}

function reaches(coverage: readonly FileCoverage[], path: string, position: number): boolean {
  const around = coverage
    .filter(file => file.path === path)
    .flatMap(({ ranges }) => ranges)
    .filter(({ startOffset, endOffset }) => startOffset <= position && position < endOffset)
    .sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset));
  return (around[0]?.count ?? 0) > 0;
}
