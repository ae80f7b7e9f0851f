import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { WorkerCounts, WorkerSettings } from "./worker-process.ts";

/** A process that sends requests, seen from its parent. */
export class Worker {
  readonly #child: ChildProcess;

  constructor(settings: WorkerSettings) {
    this.#child = fork(join(import.meta.dirname, "worker-process.ts"), [JSON.stringify(settings)]);
  }

  /** What it has done so far. The first answer comes when it has started. */
  async counts(): Promise<WorkerCounts> {
    const answer = once(this.#child, "message");
    this.#child.send({});
    const [counts] = (await answer) as [WorkerCounts];
    return counts;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}

/** The sum over all workers. */
export async function countsOf(workers: readonly Worker[]): Promise<Omit<WorkerCounts, "url">> {
  const all = await Promise.all(workers.map(worker => worker.counts()));
  const sum = (of: (counts: WorkerCounts) => number) => all.reduce((total, counts) => total + of(counts), 0);
  return {
    requests: sum(({ requests }) => requests),
    events: sum(({ events }) => events),
    cpuMs: sum(({ cpuMs }) => cpuMs),
  };
}
