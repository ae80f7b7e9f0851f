/** The program of a trial process. `try-mutants.ts` starts it and sends it the mutants of one file after the other. */
import { configureGlobal } from "fast-check";
import { type Measurement, measurementOf } from "./measurement.ts";
import { type Outcome, Trials } from "./trial.ts";
import { TrialModules } from "./trial-modules.ts";

/** The argument of the process. Files are relative to `root`. */
export interface TrialSetting {
  readonly root: string;
  /** All files with mutants. */
  readonly mutated: readonly string[];
  readonly budgetMs: number;
}

export interface TrialTask {
  readonly file: string;
  /** Test files in stages. */
  readonly stages: readonly (readonly string[])[];
  /** The positions of the mutants among those of the file. */
  readonly mutants: readonly number[];
}

export type TrialMessage =
  | { readonly kind: "measures"; readonly test: string }
  | { readonly kind: "tries"; readonly mutant: number }
  | ({ readonly kind: "tried"; readonly mutant: number } & Outcome)
  /** All mutants are tried, or the process needs too much memory and another one must try the rest. */
  | { readonly kind: "ends"; readonly isFull: boolean }
  | { readonly kind: "error"; readonly message: string };

/** Each import needs memory that is not freed before the process ends. */
const MEMORY_MAX = 1_500_000_000;

const { root, mutated, budgetMs }: TrialSetting = JSON.parse(process.argv[2] ?? "{}");
const modules = new TrialModules(root, mutated);
const measurements = new Map<string, Measurement>();
// The same examples in every trial, and no shrinking of counterexamples.
configureGlobal({ seed: 1, endOnFailure: true });

// Ctrl-C is for the parent process, which ends this one.
process.on("SIGINT", () => undefined);
process.on("message", async (task: TrialTask) => {
  // A test that waits for nothing leaves nothing to do for the process: `run-test.ts` notices that.
  process.channel?.unref();
  try {
    await tryAll(task);
  } catch (error) {
    send({ kind: "error", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
  process.channel?.ref();
});

async function tryAll({ file, stages, mutants }: TrialTask): Promise<void> {
  const trials = new Trials(file, modules, budgetMs);
  for (const mutant of mutants) {
    send({ kind: "tries", mutant });
    const outcome = await trials.try(
      mutant,
      stages.map(tests => () => measured(tests, mutant)),
    );
    send({ kind: "tried", mutant, ...outcome });
    if (process.memoryUsage.rss() > MEMORY_MAX) return send({ kind: "ends", isFull: true });
  }
  send({ kind: "ends", isFull: false });
}

async function measured(tests: readonly string[], mutant: number): Promise<readonly Measurement[]> {
  const found: Measurement[] = [];
  for (const test of tests) {
    let known = measurements.get(test);
    if (known === undefined) {
      send({ kind: "measures", test });
      known = await measurementOf(test, root, modules);
      measurements.set(test, known);
      send({ kind: "tries", mutant });
    }
    found.push(known);
  }
  return found;
}

function send(message: TrialMessage): void {
  process.send?.(message);
}
