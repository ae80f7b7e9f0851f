/** Measures the bytes that an object keeps alive, and those that work allocates. */
import { GCProfiler } from "node:v8";

export function collectGarbage(type: "major" | "minor"): void {
  if (globalThis.gc === undefined) throw new Error("benchmarks need node --expose-gc; start them with npm run bench");
  globalThis.gc({ type, execution: "sync" });
}

export interface Retained<Value> {
  readonly bytes: number;
  /** The measured object, returned so that it is alive during the measurement. */
  readonly value: Value;
}

export async function retained<Value>(build: () => Value | Promise<Value>): Promise<Retained<Value>> {
  const before = await settledBytes();
  const value = await build();
  return { bytes: (await settledBytes()) - before, value };
}

/** Bytes of the heap that `work` allocates, also those that are collected meanwhile. */
export async function allocated(work: () => Promise<void>): Promise<number> {
  collectGarbage("minor");
  const profiler = new GCProfiler();
  profiler.start();
  let bytes = -process.memoryUsage().heapUsed;
  await work();
  bytes += process.memoryUsage().heapUsed;
  for (const { beforeGC, afterGC } of profiler.stop().statistics)
    bytes += beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize;
  return bytes;
}

/** Bytes in use after garbage collection. `external` includes array buffers; those of up to 64 bytes are in the heap. */
async function settledBytes(): Promise<number> {
  // Several collections: finalisers run after the first one, and only then can the next one free their objects.
  for (let times = 0; times < 4; times += 1) {
    collectGarbage("major");
    await new Promise(resolve => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
