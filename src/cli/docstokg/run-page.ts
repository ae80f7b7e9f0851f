import { HubActions } from "../../dashboard/actions.ts";
import { dashboardOf } from "../../dashboard/dashboard.ts";
import { HubSource } from "../../dashboard/hub-source.ts";
import { OwnRunSource } from "../../dashboard/own-run-source.ts";
import { isReason } from "../../harvest/reason.ts";
import type { HarvestRun } from "../../harvest/run.ts";
import type { Hub } from "../../http/hub.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { auditLine, DashboardPort } from "./dashboard-server.ts";

/** The live page of a run, served by the process of the run. It stays open after the run if `waitForInterrupt` is called. */
export class RunPage implements AsyncDisposable {
  readonly #port: DashboardPort;
  #source: OwnRunSource | undefined;
  #url = "";

  /** Listens on the port. Rejects if it is not free, with an error that names `--dashboard-port`. */
  static async open(port: number): Promise<RunPage> {
    return new RunPage(await DashboardPort.listen({ port, address: "127.0.0.1" }, { port: "--dashboard-port" }));
  }

  private constructor(port: DashboardPort) {
    this.#port = port;
  }

  /** Returns the address of the page. @param log receives a line for each action of an operator */
  show(hub: Hub, run: HarvestRun, folder: string, log: (line: string) => void): string {
    const actions = new HubActions(hub, {
      pause: () => run.pipeline.pause(),
      resume: () => run.pipeline.resume(),
      retry: failure => (isReason(failure) ? run.addFailed(failure) : Promise.resolve(0)),
    });
    const source = new OwnRunSource(new HubSource(hub, systemTime, actions), { run, folder, time: systemTime });
    this.#source = source;
    this.#url = this.#port.serve(dashboardOf(source, { onAction: action => log(auditLine(action)) })).url;
    return this.#url;
  }

  /** From now on the page shows the state at this instant. To be called before the hub and the manifest are closed. */
  async runEnded(state: "ended" | "interrupted"): Promise<void> {
    await this.#source?.runEnded(state);
  }

  /** Keeps the page open until Ctrl-C. */
  async waitForInterrupt(io: Io): Promise<void> {
    io.stderr.write(`\nThe run has ended. Its page stays open until Ctrl-C: ${this.#url}\n`);
    const { promise: interrupted, resolve } = Promise.withResolvers<void>();
    const stopListening = io.onInterrupt?.(resolve);
    try {
      await interrupted;
    } finally {
      stopListening?.();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#port[Symbol.asyncDispose]();
  }
}
