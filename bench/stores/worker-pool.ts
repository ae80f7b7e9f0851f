import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { RoundOrder, RoundResult } from "./round.ts";

/** Where the store is. */
export interface Place {
  readonly kind: "redis" | "sqlite";
  /** The URL or the file. */
  readonly at: string;
}

interface Hand {
  readonly child: ChildProcess;
  /** Rejects when it ends. */
  readonly ended: Promise<never>;
}

/** Processes that share one store, and do everything at the same time. */
export class Crew implements AsyncDisposable {
  readonly #hands: readonly Hand[];

  static async start(size: number, place: Place): Promise<Crew> {
    const crew = new Crew(Array.from({ length: size }, () => start(place)));
    await crew.#heard();
    return crew;
  }

  private constructor(hands: readonly Hand[]) {
    this.#hands = hands;
  }

  async run(order: RoundOrder): Promise<readonly RoundResult[]> {
    const results = this.#heard();
    for (const { child } of this.#hands) child.send(order);
    return (await results) as readonly RoundResult[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#hands) if (child.connected) child.disconnect();
    await Promise.allSettled(this.#hands.map(({ ended }) => ended));
  }

  #heard(): Promise<readonly unknown[]> {
    return Promise.all(
      this.#hands.map(async ({ child, ended }) => {
        const [message] = await Promise.race([once(child, "message"), ended]);
        return message;
      }),
    );
  }
}

function start({ kind, at }: Place): Hand {
  const child = fork(resolve(import.meta.dirname, "worker.ts"), [kind, at], {
    execArgv: [],
    serialization: "advanced",
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`a process of the bench ended with code ${code}`);
  });
  // It is heard by whoever waits for the process.
  ended.catch(() => undefined);
  return { child, ended };
}
