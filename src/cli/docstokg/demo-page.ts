import { HubActions } from "../../dashboard/actions.ts";
import { dashboardOf } from "../../dashboard/dashboard.ts";
import type { RunState } from "../../dashboard/dashboard-state.ts";
import { HubSource } from "../../dashboard/hub-source.ts";
import { readRunState } from "../../dashboard/run-state.ts";
import type { HarvestRun } from "../../harvest/run.ts";
import type { Hub } from "../../http/hub.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { type ServedDashboard, serveDashboard } from "./dashboard-server.ts";

/** The live page of the demo. It can be looked at after the run too, until Ctrl-C. */
export class DemoPage implements AsyncDisposable {
  readonly #folder: string;
  #served: ServedDashboard | undefined;
  #lastRun: RunState | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the address of the page. */
  async serve(hub: Hub, run: HarvestRun): Promise<string> {
    const source = new HubSource(hub, systemTime, {
      readRun: () => this.#readRun(run),
      actions: new HubActions(hub),
    });
    this.#served = await serveDashboard(dashboardOf(source, {}), { port: 0, address: "127.0.0.1" });
    return this.#served.url;
  }

  /** Keeps the page open until Ctrl-C. */
  async waitForInterrupt(io: Io): Promise<void> {
    if (this.#served === undefined) return;
    io.stderr.write(`\nThe run has ended. Its page stays open until Ctrl-C: ${this.#served.url}\n`);
    const { promise: isInterrupted, resolve } = Promise.withResolvers<void>();
    const stopListening = io.onInterrupt?.(resolve);
    try {
      await isInterrupted;
    } finally {
      stopListening?.();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#served?.close();
  }

  /** The manifest is closed at the end of the run; then the page shows what it has read last. */
  async #readRun(run: HarvestRun): Promise<RunState | null> {
    const options = { folder: this.#folder, timeLeftMs: () => run.timeLeftMs };
    this.#lastRun = await readRunState(run.manifest, options).catch(() => this.#lastRun && ended(this.#lastRun));
    return this.#lastRun;
  }
}

function ended(run: RunState): RunState {
  if (run.state !== "running") return run;
  return { ...run, state: "ended", endedMs: systemTime.wallMs(), timeLeftMs: null };
}
