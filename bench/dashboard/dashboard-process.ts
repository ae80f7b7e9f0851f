import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

const TICK_MS = 10;

/** `docstokg dashboard` of a store. */
export class DashboardProcess {
  readonly url: string;
  readonly #child: ChildProcess;

  static async start(store: string): Promise<DashboardProcess> {
    const program = resolve(import.meta.dirname, "../../bin/docstokg.cjs");
    const args = [program, "dashboard", "--store", store, "--port", "0"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: child.stdout })) {
      const [, url] = /^Dashboard: (\S+)/.exec(line) ?? [];
      if (url !== undefined) return new DashboardProcess(url, child);
    }
    throw new Error("the dashboard has not started");
  }

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** Processor time so far. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}
