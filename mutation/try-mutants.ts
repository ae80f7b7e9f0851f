/** Asks the tests about mutants, a few at a time, and counts. */
import { resolve } from "node:path";
import type { Baseline, Baselines } from "./baseline.ts";
import type { Mutant } from "./mutants.ts";
import { runTrial } from "./run-trial.ts";

export interface MutantResult {
  readonly mutant: Mutant;
  readonly outcome: "killed" | "time-out" | "survived";
  /** The test that noticed. */
  readonly by?: string;
}

export interface Trials {
  readonly root: string;
  readonly baselines: Baselines;
  /** The tests that may know about a file, in stages: a later one is asked when all before it noticed nothing. */
  readonly stagesOf: (file: string) => readonly (readonly string[])[];
  readonly workers: number;
  /** How much longer than five times as long as usual a trial may take. The machine may be busy with other things. */
  readonly slackMs: number;
  readonly onVerdict?: (verdict: MutantResult) => void;
}

export async function tryMutants(mutants: readonly Mutant[], trials: Trials): Promise<readonly MutantResult[]> {
  const verdicts = new Map<Mutant, MutantResult>();
  const left = mutants.values();
  const work = async () => {
    for (const mutant of left) {
      const verdict = await tryMutant(mutant, trials);
      verdicts.set(mutant, verdict);
      trials.onVerdict?.(verdict);
    }
  };
  await Promise.all(Array.from({ length: trials.workers }, work));
  return mutants.flatMap(mutant => verdicts.get(mutant) ?? []);
}

async function tryMutant(mutant: Mutant, { root, baselines, stagesOf, slackMs }: Trials): Promise<MutantResult> {
  for (const tests of stagesOf(mutant.file)) {
    const reaching = await baselines.reaching(mutant, tests);
    if (reaching.length === 0) continue;
    const { start, end, after } = mutant;
    const change = { path: resolve(root, mutant.file), start, end, after };
    const result = await runTrial(
      { tests: reaching.map(({ test }) => resolve(root, test)), change },
      slackMs + limitMs(reaching),
    );
    if (result.kind === "time-out") return { mutant, outcome: "time-out" };
    if (result.kind === "failed") return { mutant, outcome: "killed", by: result.by };
  }
  return { mutant, outcome: "survived" };
}

/** Generous, since who is cut off counts as killed. */
function limitMs(tests: readonly Baseline[]): number {
  return 5 * tests.reduce((sum, { tookMs }) => sum + tookMs, 0);
}
