import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

export interface EndedProcess {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Collects what a process prints. Call it before the process can print anything. */
export function collectOutput(child: ChildProcess) {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", chunk => {
    stdout += String(chunk);
  });
  child.stderr?.on("data", chunk => {
    stderr += String(chunk);
  });
  const ended = once(child, "close").then(([code, signal]): EndedProcess => ({ code, signal, stdout, stderr }));
  return { ended, stderrSoFar: () => stderr };
}
