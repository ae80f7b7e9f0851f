/** Runs the tests for each mutant, a few mutants at a time. */
import { resolve } from "node:path";
import type { Baseline, Baselines } from "./baseline.ts";
import type { Mutant } from "./mutants.ts";
import { runTrial } from "./run-trial.ts";

export interface MutantResult {
  readonly mutant: Mutant;
  readonly outcome: "killed" | "time-out" | "survived";
  /** The test that failed. */
  readonly by?: string;
}

export interface Trials {
  readonly root: string;
  readonly baselines: Baselines;
  /** The tests for a file, in stages: a later stage runs only when all tests of the earlier ones passed. */
  readonly stagesOf: (file: string) => readonly (readonly string[])[];
  readonly workers: number;
  /** Time that a trial gets beyond five times its usual duration, because the machine may be busy. */
  readonly slackMs: number;
  readonly onResult?: (result: MutantResult) => void;
}

export async function tryMutants(mutants: readonly Mutant[], trials: Trials): Promise<readonly MutantResult[]> {
  const results = new Map<Mutant, MutantResult>();
  const left = mutants.values();
  const work = async () => {
    for (const mutant of left) {
      const result = await tryMutant(mutant, trials);
      results.set(mutant, result);
      trials.onResult?.(result);
    }
  };
  await Promise.all(Array.from({ length: trials.workers }, work));
  return mutants.flatMap(mutant => results.get(mutant) ?? []);
}

async function tryMutant(mutant: Mutant, { root, baselines, stagesOf, slackMs }: Trials): Promise<MutantResult> {
  for (const tests of stagesOf(mutant.file)) {
    const reaching = await baselines.reaching(mutant, tests);
    if (reaching.length === 0) continue;
    const { start, end, after } = mutant;
    const change = { path: resolve(root, mutant.file), start, end, after };
    const trial = await runTrial(
      { tests: reaching.map(({ test }) => resolve(root, test)), change },
      slackMs + limitMs(reaching),
    );
    if (trial.kind === "time-out") return { mutant, outcome: "time-out" };
    if (trial.kind === "failed") return { mutant, outcome: "killed", by: trial.by };
  }
  return { mutant, outcome: "survived" };
}

/** Generous, because a timeout counts as killed. */
function limitMs(tests: readonly Baseline[]): number {
  return 5 * tests.reduce((sum, { tookMs }) => sum + tookMs, 0);
}
