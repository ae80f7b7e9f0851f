import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { RoundOrder, RoundResult } from "./round.ts";

/** The kind and the address of the store. */
export interface StoreLocation {
  readonly kind: "redis" | "sqlite";
  /** The URL or the file. */
  readonly at: string;
}

interface WorkerProcess {
  readonly child: ChildProcess;
  /** Rejects when the process ends. */
  readonly ended: Promise<never>;
}

/** Processes that share one store and run each round at the same time. */
export class WorkerPool implements AsyncDisposable {
  readonly #workers: readonly WorkerProcess[];

  static async start(size: number, place: StoreLocation): Promise<WorkerPool> {
    const pool = new WorkerPool(Array.from({ length: size }, () => start(place)));
    await pool.#nextMessages();
    return pool;
  }

  private constructor(workers: readonly WorkerProcess[]) {
    this.#workers = workers;
  }

  async run(order: RoundOrder): Promise<readonly RoundResult[]> {
    const results = this.#nextMessages();
    for (const { child } of this.#workers) child.send(order);
    return (await results) as readonly RoundResult[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#workers) if (child.connected) child.disconnect();
    await Promise.allSettled(this.#workers.map(({ ended }) => ended));
  }

  #nextMessages(): Promise<readonly unknown[]> {
    return Promise.all(
      this.#workers.map(async ({ child, ended }) => {
        const [message] = await Promise.race([once(child, "message"), ended]);
        return message;
      }),
    );
  }
}

function start({ kind, at }: StoreLocation): WorkerProcess {
  const child = fork(resolve(import.meta.dirname, "worker.ts"), [kind, at], {
    execArgv: [],
    serialization: "advanced",
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`a process of the benchmark ended with code ${code}`);
  });
  // Handled by the caller that waits for the process.
  ended.catch(() => undefined);
  return { child, ended };
}
