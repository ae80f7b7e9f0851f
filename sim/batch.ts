import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { drawPlan } from "./draw-plan.ts";
import { simulate, type Violation } from "./simulate.ts";

export interface BatchOrder {
  readonly from: number;
  readonly count: number;
}

export interface BrokenSeed extends Violation {
  readonly seed: number;
}

export interface BatchSum {
  readonly seeds: number;
  readonly requests: number;
  readonly broken: readonly BrokenSeed[];
}

/** While one world waits for its turn of the loop another may have it. */
const AT_ONCE = 4;
/** A worker takes so many at a time, so that all of them end together. */
const CHUNK = 250;

/** Runs seeds in this thread. */
export async function runHere({ from, count }: BatchOrder): Promise<BatchSum> {
  let next = from;
  let requests = 0;
  const broken: BrokenSeed[] = [];
  const work = async () => {
    while (next < from + count) {
      const seed = next;
      next += 1;
      const outcome = await simulate(drawPlan(seed));
      requests += outcome.requests;
      broken.push(...outcome.violations.map(violation => ({ ...violation, seed })));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { seeds: count, requests, broken };
}

/** Runs seeds in as many threads as there are cores, or as many as said; `onChunk` hears how far it is. */
export async function runBatch(
  { from, count }: BatchOrder,
  { threads = availableParallelism(), onChunk }: { threads?: number; onChunk?: (sum: BatchSum) => void } = {},
): Promise<BatchSum> {
  let next = from;
  let sum: BatchSum = { seeds: 0, requests: 0, broken: [] };
  const feed = async () => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    try {
      while (next < from + count) {
        const order = { from: next, count: Math.min(CHUNK, from + count - next) };
        next += order.count;
        const part = await asked(worker, order);
        sum = add(sum, part);
        onChunk?.(sum);
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(threads, Math.ceil(count / CHUNK)) }, feed));
  return sum;
}

function asked(worker: Worker, order: BatchOrder): Promise<BatchSum> {
  const { promise, resolve, reject } = Promise.withResolvers<BatchSum>();
  worker.removeAllListeners();
  worker.once("message", resolve);
  worker.once("error", reject);
  worker.postMessage(order);
  return promise;
}

function add(a: BatchSum, b: BatchSum): BatchSum {
  return { seeds: a.seeds + b.seeds, requests: a.requests + b.requests, broken: [...a.broken, ...b.broken] };
}
