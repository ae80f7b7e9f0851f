import { HubActions } from "../../dashboard/actions.ts";
import { dashboardOf } from "../../dashboard/dashboard.ts";
import type { RunState } from "../../dashboard/dashboard-state.ts";
import { HubSource } from "../../dashboard/hub-source.ts";
import { readRunState } from "../../dashboard/run-state.ts";
import { isReason } from "../../harvest/reason.ts";
import type { HarvestRun } from "../../harvest/run.ts";
import type { Hub } from "../../http/hub.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { auditLine, type ServedDashboard, serveDashboard } from "./dashboard-server.ts";

/** The live page of a run, served by the process of the run. It stays open after the run if `waitForInterrupt` is called. */
export class RunPage implements AsyncDisposable {
  readonly #folder: string;
  #served: ServedDashboard | undefined;
  #lastRun: RunState | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the address of the page. @param log receives a line for each action of an operator */
  async serve(hub: Hub, run: HarvestRun, port: number, log: (line: string) => void): Promise<string> {
    const source = new HubSource(hub, systemTime, {
      readRun: () => this.#readRun(run),
      readHistory: key => run.manifest.reports.workHistory(key),
      actions: new HubActions(hub, {
        pause: () => run.pipeline.pause(),
        resume: () => run.pipeline.resume(),
        retry: failure => (isReason(failure) ? run.addFailed(failure) : Promise.resolve(0)),
      }),
    });
    const dashboard = dashboardOf(source, { onAction: action => log(auditLine(action)) });
    this.#served = await serveDashboard(dashboard, { port, address: "127.0.0.1" }, { port: "--dashboard-port" });
    return this.#served.url;
  }

  /** Keeps the page open until Ctrl-C. */
  async waitForInterrupt(io: Io): Promise<void> {
    if (this.#served === undefined) return;
    io.stderr.write(`\nThe run has ended. Its page stays open until Ctrl-C: ${this.#served.url}\n`);
    const { promise: interrupted, resolve } = Promise.withResolvers<void>();
    const stopListening = io.onInterrupt?.(resolve);
    try {
      await interrupted;
    } finally {
      stopListening?.();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#served?.close();
  }

  /** The manifest is closed at the end of the run; then the page shows the state that was read last. */
  async #readRun(run: HarvestRun): Promise<RunState | null> {
    const options = { folder: this.#folder, timeLeftMs: () => run.timeLeftMs, isPaused: run.pipeline.isPaused };
    this.#lastRun = await readRunState(run.manifest, options).catch(() => this.#lastRun && ended(this.#lastRun));
    return this.#lastRun;
  }
}

function ended(run: RunState): RunState {
  if (run.state !== "running") return run;
  return { ...run, state: "ended", endedMs: systemTime.wallMs(), timeLeftMs: null };
}
