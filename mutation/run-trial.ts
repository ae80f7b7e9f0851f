/** Starts trials in child processes and collects their reports. */
import { fork } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TrialReport, TrialTask } from "./trial.ts";

export type TrialResult =
  | { readonly kind: "passed"; readonly report: TrialReport; readonly tookMs: number }
  | { readonly kind: "failed"; readonly by: string }
  | { readonly kind: "time-out" };

const TRIAL = join(import.meta.dirname, "trial.ts");

/** A trial that ends without a report has failed, because the change broke the process itself. */
export function runTrial(task: TrialTask, limitMs: number): Promise<TrialResult> {
  const startMs = performance.now();
  const child = fork(TRIAL, [JSON.stringify(task)], {
    // Stripping types takes longer than most tests, so unchanged files come from the compile cache.
    env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "mutation-compile-cache"), NODE_TEST_CONTEXT: "" },
    execArgv: ["--no-warnings", "--max-old-space-size=512"],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  return new Promise((resolve, reject) => {
    let result: TrialResult = { kind: "failed", by: "the process ended" };
    const timer = setTimeout(() => {
      result = { kind: "time-out" };
      child.kill("SIGKILL");
    }, limitMs);
    child.on("message", (report: TrialReport) => {
      const tookMs = performance.now() - startMs;
      result = report.failed === undefined ? { kind: "passed", report, tookMs } : { kind: "failed", by: report.failed };
    });
    child.on("error", reject);
    child.on("exit", () => {
      clearTimeout(timer);
      resolve(result);
    });
  });
}
