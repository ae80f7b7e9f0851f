import { parentPort } from "node:worker_threads";
import { type BatchOrder, runInThread } from "./batch.ts";

/** A worker thread that runs the seeds of each message. */
parentPort?.on("message", async (order: BatchOrder) => {
  parentPort?.postMessage(await runInThread(order));
});
