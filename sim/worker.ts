import { parentPort, workerData } from "node:worker_threads";
import { type BatchOrder, runInThread, ThreadState } from "./batch.ts";

const state = new ThreadState(workerData as Int32Array<SharedArrayBuffer>);

/** A worker thread that runs the seeds of each message. */
parentPort?.on("message", async (order: BatchOrder) => {
  parentPort?.postMessage(await runInThread(order, state));
});
