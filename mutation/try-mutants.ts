/** Has mutants tried in processes that run many trials, and replaces a process that a mutant has ended or blocked. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Mutant, mutantsOf } from "./mutants.ts";
import type { Outcome } from "./trial.ts";
import type { TrialMessage, TrialSetting, TrialTask } from "./trial-process.ts";

export type MutantResult = Outcome & { readonly mutant: Mutant };

export interface TryOptions extends TrialSetting {
  /** The test files for a file, in stages: a later stage runs only when all tests of the earlier ones passed. */
  readonly stagesOf: (file: string) => readonly (readonly string[])[];
  /** A process that sends nothing for so long is blocked. */
  readonly hangMs: number;
  readonly onResult?: (result: MutantResult) => void;
}

const PROGRAM = join(import.meta.dirname, "trial-process.ts");

export class MutantTrials {
  readonly #options: TryOptions;
  #child: ChildProcess | undefined;
  #isClosed = false;

  constructor(options: TryOptions) {
    this.#options = options;
  }

  /** Tries mutants of one file, in their order. After `close`, only the results until then. */
  async try(file: string, mutants: readonly Mutant[]): Promise<readonly MutantResult[]> {
    const { root, stagesOf, onResult } = this.#options;
    const all = mutantsOf(file, readFileSync(resolve(root, file), "utf8"));
    const positions = new Map(all.map(({ id }, index) => [id, index]));
    const left = new Map(mutants.map(mutant => [positions.get(mutant.id) ?? -1, mutant]));
    const results: MutantResult[] = [];
    while (left.size > 0 && !this.#isClosed) {
      await this.#run({ file, stages: stagesOf(file), mutants: [...left.keys()] }, (index, outcome) => {
        const mutant = left.get(index);
        if (mutant === undefined) return;
        left.delete(index);
        const result = { ...outcome, mutant };
        results.push(result);
        onResult?.(result);
      });
    }
    return results;
  }

  close(): void {
    this.#isClosed = true;
    this.#child?.kill("SIGKILL");
  }

  /** Returns when the process has tried all mutants, or has ended. */
  async #run(task: TrialTask, onOutcome: (mutant: number, outcome: Outcome) => void): Promise<void> {
    const child = this.#child ?? this.#start();
    this.#child = child;
    let doing: TrialMessage | undefined;
    let isBlocked = false;
    let error: string | undefined;
    const block = () => {
      isBlocked = true;
      child.kill("SIGKILL");
    };
    const timer = setTimeout(block, this.#options.hangMs);
    const isOver = Promise.withResolvers<void>();
    const onMessage = (message: TrialMessage) => {
      timer.refresh();
      doing = message;
      if (message.kind === "tried") onOutcome(message.mutant, message);
      if (message.kind === "error") error = message.message;
      if (message.kind === "ends" && !message.isFull) isOver.resolve();
      if (message.kind === "error" || (message.kind === "ends" && message.isFull)) child.kill("SIGKILL");
    };
    child.on("message", onMessage);
    child.send(task);
    const hasEnded = once(child, "exit");
    await Promise.race([isOver.promise, hasEnded]);
    clearTimeout(timer);
    child.off("message", onMessage);
    if (doing?.kind === "ends" && !doing.isFull) return;
    this.#child = undefined;
    if (this.#isClosed) return;
    if (error !== undefined) throw new Error(error);
    if (doing === undefined) throw new Error("the trial process does not start");
    if (doing.kind === "measures") throw new Error(`${doing.test} ends or blocks its process without any change`);
    if (doing.kind === "tries")
      onOutcome(doing.mutant, isBlocked ? { outcome: "time-out" } : { outcome: "killed", by: "the process ended" });
  }

  #start(): ChildProcess {
    const { root, mutated, budgetMs } = this.#options;
    const setting: TrialSetting = { root, mutated, budgetMs };
    return fork(PROGRAM, [JSON.stringify(setting)], {
      execArgv: ["--no-warnings", "--max-old-space-size=4096"],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
  }
}
