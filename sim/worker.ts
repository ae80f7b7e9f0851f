import { parentPort } from "node:worker_threads";
import { type BatchOrder, runInThread } from "./batch.ts";

/** A thread that runs the seeds it is asked for. */
parentPort?.on("message", async (order: BatchOrder) => {
  parentPort?.postMessage(await runInThread(order));
});
