import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { packageFolder } from "../../http/package-folder.ts";
import type { CommandResult, ServersCommand, ServersReady, WorkerOptions } from "./servers-messages.ts";

interface PendingCommand {
  readonly resolve: (result: CommandResult["result"]) => void;
  readonly reject: (reason: Error) => void;
}

/** A file of the package, which a bundle does not have: it is looked for only when a thread is started. */
function workerFile(): string {
  const isSource = import.meta.filename.endsWith(".ts");
  return join(packageFolder(), isSource ? "src/testing/internet/worker.ts" : "dist/testing/internet/worker.js");
}

/**
 * Sends commands to the thread that runs the simulated servers. When the thread ends, all pending commands are
 * rejected.
 */
export class ServersThread {
  readonly ready: Promise<ServersReady>;
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingCommand>();
  #lastId = 0;
  #endReason: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: WorkerOptions, file: string | URL = workerFile()) {
    // An empty list, so that the thread does not inherit flags of the process such as `--import` or `--input-type`.
    this.#worker = new Worker(file, { workerData: options, execArgv: [] });
    const { promise, resolve, reject } = Promise.withResolvers<ServersReady>();
    this.ready = promise;
    this.#worker.once("message", (ready: ServersReady) => {
      resolve(ready);
      this.#worker.on("message", (response: CommandResult) => this.#received(response));
    });
    const ended = (error: Error) => {
      this.#endReason ??= error;
      reject(this.#endReason);
      for (const { reject: rejectCommand } of this.#pending.values()) rejectCommand(this.#endReason);
      this.#pending.clear();
    };
    this.#worker.once("error", cause => ended(new Error("the thread of the simulated internet has failed", { cause })));
    this.#worker.once("exit", () => ended(new Error("the simulated internet is closed")));
  }

  send(command: ServersCommand): Promise<CommandResult["result"]> {
    if (this.#endReason !== undefined) return Promise.reject(this.#endReason);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      // Sent before it is added to the map: if the command cannot be cloned, `postMessage` throws, and no entry may stay.
      this.#worker.postMessage({ ...command, id });
      this.#pending.set(id, { resolve, reject });
    });
  }

  /** May be called again, also after the thread has failed. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#endReason === undefined) await this.send({ kind: "close" }).catch(() => undefined);
    await this.#worker.terminate();
  }

  #received({ id, result }: CommandResult): void {
    this.#pending.get(id)?.resolve(result);
    this.#pending.delete(id);
  }
}
