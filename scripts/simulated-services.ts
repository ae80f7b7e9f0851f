/**
 * The services of the simulated internet in a process of their own, so that the memory of a run can be measured without
 * theirs.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import type { SimulatedIds } from "../src/testing/internet/copy.ts";
import type { SimulatedReply, SimulatedRequest } from "../src/testing/internet/exchange.ts";
import { makeHostDirectory } from "../src/testing/internet/host-directory.ts";

interface Question {
  readonly number: number;
  readonly request: Omit<SimulatedRequest, "query">;
}

interface Answer {
  readonly number: number;
  readonly reply: SimulatedReply;
}

export interface SimulatedServices extends Disposable {
  /** The identifiers of every work that the services know. */
  readonly works: readonly SimulatedIds[];
  answer(request: SimulatedRequest): Promise<SimulatedReply>;
}

export async function startServices(works: number): Promise<SimulatedServices> {
  const child = fork(import.meta.filename, [String(works)], { serialization: "advanced" });
  const waiting = new Map<number, (reply: SimulatedReply) => void>();
  const [known] = (await once(child, "message")) as [readonly SimulatedIds[]];
  child.on("message", message => {
    const { number, reply } = message as Answer;
    waiting.get(number)?.(reply);
    waiting.delete(number);
  });
  let last = 0;
  return {
    works: known,
    answer: ({ query: _, ...request }) =>
      new Promise(resolve => {
        last += 1;
        waiting.set(last, resolve);
        child.send({ number: last, request } satisfies Question);
      }),
    [Symbol.dispose]: () => void child.kill(),
  };
}

function serve(works: number): void {
  const directory = makeHostDirectory({ seed: 1, works, bigOntologyBytes: 10_000 });
  process.send?.(directory.works.map(({ ids }) => ids));
  process.on("message", message => {
    const { number, request } = message as Question;
    const reply = directory.answer({ ...request, query: new URLSearchParams(request.search) });
    process.send?.({ number, reply } satisfies Answer);
  });
}

if (import.meta.main) serve(Number(process.argv[2]));
