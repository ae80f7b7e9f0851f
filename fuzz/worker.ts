/** Fuzzes one target in a thread of its own, which `run.ts` ends if a parser never returns. */
import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { parentPort, workerData } from "node:worker_threads";
import { Random } from "../sim/random.ts";
import { readCorpus, writeCorpus } from "./corpus.ts";
import { Coverage } from "./coverage.ts";
import { Fuzzer } from "./fuzzer.ts";
import { TARGETS } from "./targets.ts";

export interface WorkerTask {
  readonly name: string;
  readonly seed: number;
  readonly ms: number;
  /** Holds the length and the bytes of the input that runs, so that the main thread can read it at any time. */
  readonly current: SharedArrayBuffer;
}

export type WorkerReport =
  | { readonly kind: "progress"; readonly runs: number; readonly corpus: number }
  | { readonly kind: "done"; readonly runs: number; readonly corpus: number; readonly reached: number }
  | { readonly kind: "broken"; readonly input: Uint8Array; readonly message: string };

const { name, seed, ms, current } = workerData as WorkerTask;
const target = TARGETS.find(candidate => candidate.name === name);
assert(target !== undefined, name);
const length = new Int32Array(current, 0, 1);
const bytes = new Uint8Array(current, 4);
const isOurs = (url: string) => url.startsWith("file:") && !/\/(?:fuzz|sim)\//.test(url);

const coverage = new Coverage(isOurs);
const fuzzer = new Fuzzer(target, readCorpus(target), {
  random: new Random(seed),
  coverage,
  cpuMs: () => process.threadCpuUsage().user / 1000,
  onInput: input => {
    bytes.set(input.subarray(0, bytes.length));
    length[0] = Math.min(input.length, bytes.length);
  },
});

let finding = await fuzzer.start();
const untilMs = performance.now() + ms;
while (finding === undefined && performance.now() < untilMs) {
  finding = await fuzzer.step();
  report({ kind: "progress", runs: fuzzer.runs, corpus: fuzzer.corpus.length });
}
if (finding !== undefined) report({ kind: "broken", ...finding });
else {
  const reached = coverage.total;
  coverage[Symbol.dispose]();
  using fresh = new Coverage(isOurs);
  const kept = await fuzzer.smallest(fresh);
  writeCorpus(target, kept);
  report({ kind: "done", runs: fuzzer.runs, corpus: kept.length, reached });
}

function report(message: WorkerReport): void {
  parentPort?.postMessage(message);
}
