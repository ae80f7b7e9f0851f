import { Worker } from "node:worker_threads";
import type { CommandResult, ServersCommand, ServersReady, WorkerOptions } from "./servers-messages.ts";

interface Waiting {
  readonly resolve: (result: CommandResult["result"]) => void;
  readonly reject: (reason: Error) => void;
}

// In the sources the file is worker.ts, in the built package worker.js.
const FILE = new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);

/** Sends commands to the thread of the servers. When the thread ends, all open commands are rejected. */
export class ServersThread {
  readonly ready: Promise<ServersReady>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #end: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: WorkerOptions, file = FILE) {
    // An empty list, so that the thread does not inherit flags of the process such as `--import` or `--input-type`.
    this.#worker = new Worker(file, { workerData: options, execArgv: [] });
    const { promise, resolve, reject } = Promise.withResolvers<ServersReady>();
    this.ready = promise;
    this.#worker.once("message", (ready: ServersReady) => {
      resolve(ready);
      this.#worker.on("message", (response: CommandResult) => this.#received(response));
    });
    const ended = (error: Error) => {
      this.#end ??= error;
      reject(this.#end);
      for (const { reject: refuse } of this.#waiting.values()) refuse(this.#end);
      this.#waiting.clear();
    };
    this.#worker.once("error", cause => ended(new Error("the thread of the simulated internet has failed", { cause })));
    this.#worker.once("exit", () => ended(new Error("the simulated internet is closed")));
  }

  send(command: ServersCommand): Promise<CommandResult["result"]> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      // First, because it throws if the command cannot be cloned, and then nothing must wait for a result.
      this.#worker.postMessage({ ...command, id });
      this.#waiting.set(id, { resolve, reject });
    });
  }

  /** May be called again, also after the thread has failed. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#end === undefined) await this.send({ kind: "close" }).catch(() => undefined);
    await this.#worker.terminate();
  }

  #received({ id, result }: CommandResult): void {
    this.#waiting.get(id)?.resolve(result);
    this.#waiting.delete(id);
  }
}
