/** Starts trials and hears their answers. */
import { fork } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Task, Told } from "./trial.ts";

export type Answer =
  | { readonly kind: "passed"; readonly told: Told; readonly tookMs: number }
  | { readonly kind: "failed"; readonly by: string }
  | { readonly kind: "time-out" };

const TRIAL = join(import.meta.dirname, "trial.ts");

/** A trial that ends without an answer has failed: the change broke the process itself. */
export function ask(task: Task, limitMs: number): Promise<Answer> {
  const startMs = performance.now();
  const child = fork(TRIAL, [JSON.stringify(task)], {
    // Stripping types costs more than most of the tests; the cache keeps what Node made of the files that are unchanged.
    env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "mutation-compile-cache"), NODE_TEST_CONTEXT: "" },
    execArgv: ["--no-warnings", "--max-old-space-size=512"],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  return new Promise((resolve, reject) => {
    let answer: Answer = { kind: "failed", by: "the process ended" };
    const timer = setTimeout(() => {
      answer = { kind: "time-out" };
      child.kill("SIGKILL");
    }, limitMs);
    child.on("message", (told: Told) => {
      const tookMs = performance.now() - startMs;
      answer = told.failed === undefined ? { kind: "passed", told, tookMs } : { kind: "failed", by: told.failed };
    });
    child.on("error", reject);
    child.on("exit", () => {
      clearTimeout(timer);
      resolve(answer);
    });
  });
}
