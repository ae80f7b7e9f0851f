import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemTime } from "../src/time/system-time.ts";
import type { StoreLink } from "./store-link.ts";
import type { WorkerMessage, WorkerOptions } from "./worker.ts";

/** A line that a process wrote to stderr. */
export interface PrintedLine {
  readonly atUs: number;
  readonly process: number;
  readonly line: string;
}

/** One member of the fleet. After a kill it is started again, as a supervisor does. */
export class ChaosProcess {
  readonly index: number;
  readonly link: StoreLink;
  readonly #options: WorkerOptions;
  readonly #onLine: (line: PrintedLine) => void;
  #child: ChildProcess | undefined;
  /** Exits that no fault has caused. */
  readonly unexpectedExits: string[] = [];
  #isExitExpected = false;

  constructor(index: number, link: StoreLink, options: WorkerOptions, onLine: (line: PrintedLine) => void) {
    this.index = index;
    this.link = link;
    this.#options = options;
    this.#onLine = onLine;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Resolves when the process sends requests, or has ended, which `mayEnd` permits. */
  async start({ mayEnd = false } = {}): Promise<void> {
    if (this.isRunning) return;
    const child = fork(join(import.meta.dirname, "worker.ts"), [JSON.stringify(this.#options)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: ["--import", join(import.meta.dirname, "reroute.ts")],
      env: { ...process.env, CHAOS_ROUTES: JSON.stringify(this.link.routes), NODE_OPTIONS: "" },
    });
    this.#child = child;
    this.#isExitExpected = mayEnd;
    if (child.stderr !== null)
      createInterface(child.stderr).on("line", line =>
        this.#onLine({ atUs: systemTime.machineUs(), process: this.index, line }),
      );
    child.on("error", () => undefined);
    child.once("exit", (code, signal) => {
      if (this.#child === child) this.#child = undefined;
      if (!this.#isExitExpected) this.unexpectedExits.push(`process ${this.index} ended with ${signal ?? code}`);
    });
    await Promise.race([once(child, "message"), once(child, "exit")]);
  }

  async kill(): Promise<void> {
    await this.#end(child => child.kill("SIGKILL"));
  }

  suspend(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  stall(stallMs: number): void {
    this.#send({ stallMs });
  }

  /** Ends the process, by force if it does not end by itself within ten seconds. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), 10_000);
    await this.#end(() => this.#send("stop"));
    clearTimeout(timer);
    this.link.close();
  }

  #send(message: WorkerMessage): void {
    if (this.#child?.connected) this.#child.send(message);
  }

  async #end(how: (child: ChildProcess) => void): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#isExitExpected = true;
    const exited = once(child, "exit");
    how(child);
    await exited;
  }
}
