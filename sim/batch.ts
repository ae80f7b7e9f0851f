import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { drawPlan } from "./draw-plan.ts";
import { type Occasions, simulate, type Violation } from "./simulate.ts";

export interface BatchOrder {
  readonly from: number;
  readonly count: number;
}

export interface BrokenSeed extends Violation {
  readonly seed: number;
}

export interface BatchResult {
  readonly seeds: number;
  readonly requests: number;
  readonly broken: readonly BrokenSeed[];
  readonly occasions: Occasions;
}

/** Worlds that run at the same time in one thread: while one waits for the event loop, another can run. */
const CONCURRENT_WORLDS = 4;
/** Seeds that a worker gets at a time. Small, so that all workers end at about the same time. */
const CHUNK = 250;

/** A world ends within a second of one core. */
const STUCK_MS = 120_000;

/** What a thread is doing, in shared memory: a thread in an endless loop sends no message. */
export class ThreadState {
  /** The seeds that are running, and the number of worlds that have ended. */
  readonly cells: Int32Array;

  constructor(cells = new Int32Array(new SharedArrayBuffer(4 * (CONCURRENT_WORLDS + 1)))) {
    this.cells = cells;
  }

  began(slot: number, seed: number): void {
    this.cells[slot] = seed;
  }

  ended(): void {
    Atomics.add(this.cells, CONCURRENT_WORLDS, 1);
  }

  get endedWorlds(): number {
    return Atomics.load(this.cells, CONCURRENT_WORLDS);
  }

  get seeds(): readonly number[] {
    return [...this.cells.slice(0, CONCURRENT_WORLDS)];
  }
}

/** Runs seeds in this thread. */
export async function runInThread(
  { from, count }: BatchOrder,
  state: ThreadState = new ThreadState(),
): Promise<BatchResult> {
  let next = from;
  let requests = 0;
  let occasions: Occasions = {};
  const broken: BrokenSeed[] = [];
  const work = async (slot: number) => {
    while (next < from + count) {
      const seed = next;
      next += 1;
      state.began(slot, seed);
      const outcome = await simulate(drawPlan(seed));
      state.ended();
      requests += outcome.requests;
      occasions = sumOf(occasions, outcome.occasions);
      broken.push(...outcome.violations.map(violation => ({ ...violation, seed })));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_WORLDS }, (_, slot) => work(slot)));
  return { seeds: count, requests, broken, occasions };
}

/** Runs seeds in `threads` workers, by default one for each core. `onChunk` gets the sum so far after each chunk. */
export async function runBatch(
  { from, count }: BatchOrder,
  { threads = availableParallelism(), onChunk }: { threads?: number; onChunk?: (sum: BatchResult) => void } = {},
): Promise<BatchResult> {
  let next = from;
  let sum: BatchResult = { seeds: 0, requests: 0, broken: [], occasions: {} };
  const runWorker = async () => {
    const state = new ThreadState();
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: state.cells });
    try {
      while (next < from + count) {
        const order = { from: next, count: Math.min(CHUNK, from + count - next) };
        next += order.count;
        const part = await runOrder(worker, order, state);
        sum = add(sum, part);
        onChunk?.(sum);
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(threads, Math.ceil(count / CHUNK)) }, runWorker));
  return sum;
}

/** Rejects if no world of the worker ends for STUCK_MS. */
function runOrder(worker: Worker, order: BatchOrder, state: ThreadState): Promise<BatchResult> {
  const { promise, resolve, reject } = Promise.withResolvers<BatchResult>();
  worker.removeAllListeners();
  worker.once("message", resolve);
  worker.once("error", reject);
  worker.postMessage(order);
  let endedWorlds = -1;
  const watch = setInterval(() => {
    if (state.endedWorlds === endedWorlds)
      reject(
        new Error(
          `no world has ended for ${STUCK_MS / 1000} s; one of these seeds does not end: ${state.seeds.join(", ")}`,
        ),
      );
    endedWorlds = state.endedWorlds;
  }, STUCK_MS);
  return promise.finally(() => clearInterval(watch));
}

function add(a: BatchResult, b: BatchResult): BatchResult {
  return {
    seeds: a.seeds + b.seeds,
    requests: a.requests + b.requests,
    broken: [...a.broken, ...b.broken],
    occasions: sumOf(a.occasions, b.occasions),
  };
}

export function sumOf(a: Occasions, b: Occasions): Occasions {
  const titles = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...titles].map(title => [title, (a[title] ?? 0) + (b[title] ?? 0)]));
}
