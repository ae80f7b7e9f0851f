import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { SCRIPT_SHA } from "../../src/stores/redis/redis-script.ts";

/** Counts the calls of scripts by what the server receives, with `redis-cli MONITOR`. */
export class ScriptCalls {
  /** Calls of the script that leases units. */
  leases = 0;
  /** Calls of the script that reads and writes records: breakers, and the status of each process. */
  records = 0;
  readonly #monitor;

  constructor(port: number) {
    this.#monitor = spawn("redis-cli", ["-p", String(port), "MONITOR"], { stdio: ["ignore", "pipe", "ignore"] });
    createInterface(this.#monitor.stdout).on("line", line => {
      if (!line.includes('"EVALSHA"')) return;
      if (line.includes(SCRIPT_SHA)) this.leases += 1;
      else this.records += 1;
    });
  }

  stop(): void {
    this.#monitor.kill();
  }
}
