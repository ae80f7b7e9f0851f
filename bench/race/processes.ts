/** The child processes of the race. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

export class Child implements AsyncDisposable {
  readonly #file: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<never>;

  constructor(file: string, argument: unknown) {
    this.#file = file;
    this.#process = fork(resolve(import.meta.dirname, file), [JSON.stringify(argument)], {
      execArgv: ["--expose-gc"],
      // Their output goes to stderr; stdout is for the tables.
      stdio: ["ignore", 2, 2, "ipc"],
    });
    this.#ended = once(this.#process, "exit").then(([code, signal]) => {
      throw new Error(`${file} ended with ${signal ?? code} before it had reported`);
    });
    // Handled by the caller that waits for a message.
    this.#ended.catch(() => undefined);
  }

  send(message: string): void {
    this.#process.send(message);
  }

  /** The next message; rejects if the process ends first, or sends nothing within `withinMs`. */
  async nextMessage(withinMs: number): Promise<unknown> {
    const signal = AbortSignal.timeout(withinMs);
    const said = once(this.#process, "message", { signal }).catch(error => {
      if (!signal.aborted) throw error;
      throw new Error(`${this.#file} sent nothing for ${Math.round(withinMs / 1000)} s`);
    });
    const [message] = await Promise.race([said, this.#ended]);
    return message;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, "exit");
    // A client whose event loop is blocked would not notice that the parent has disconnected.
    const killTimer = setTimeout(() => this.#process.kill("SIGKILL"), 5000);
    if (this.#process.connected) this.#process.disconnect();
    await gone;
    clearTimeout(killTimer);
  }
}
