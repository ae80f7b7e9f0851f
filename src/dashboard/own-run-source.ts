import { messageOf } from "../errors.ts";
import type { HarvestRun } from "../harvest/run.ts";
import type { ExplainedValue } from "../policy/explanation.ts";
import type { Time } from "../time/time.ts";
import type { DashboardActions } from "./actions.ts";
import { BoundedRead } from "./bounded-read.ts";
import type { RunState, WorkHistoryState } from "./dashboard-state.ts";
import type { HubSource } from "./hub-source.ts";
import { readRunState } from "./run-state.ts";
import type { DashboardSource, SourceState } from "./source.ts";

/** The hub is shown at once, however long the manifest takes. */
const LATE_MS = 1000;
const ENDED = "The run has ended, and the page shows its last state.";

/** The parts of a run that the page reads. */
export type OwnRun = Pick<HarvestRun, "manifest" | "timeLeftMs"> & {
  readonly pipeline: { readonly isPaused: boolean };
};

/** A run of this process: its requests from the hub, its works from the manifest. */
export class OwnRunSource implements DashboardSource {
  readonly about: HubSource["about"];
  readonly actions: DashboardActions | undefined;
  readonly log: HubSource["log"];
  readonly #hub: HubSource;
  readonly #run: OwnRun;
  readonly #time: Time;
  readonly #runState: BoundedRead<RunState | null>;
  #lastRun: RunState | null = null;
  #final: SourceState | undefined;

  constructor(
    hub: HubSource,
    { run, folder, time }: { readonly run: OwnRun; readonly folder: string; readonly time: Time },
  ) {
    this.about = hub.about;
    this.log = hub.log;
    const { actions } = hub;
    this.actions = actions && {
      names: actions.names,
      run: async action => {
        if (this.#final !== undefined) throw new RangeError("the run has ended");
        return actions.run(action);
      },
    };
    this.#hub = hub;
    this.#run = run;
    this.#time = time;
    const read = () =>
      readRunState(run.manifest, { folder, timeLeftMs: () => run.timeLeftMs, isPaused: run.pipeline.isPaused });
    this.#runState = new BoundedRead(read, time, LATE_MS);
  }

  async read(): Promise<SourceState> {
    if (this.#final !== undefined) return { ...this.#final, events: this.log.takeAll() };
    let trouble: string | null = null;
    try {
      this.#lastRun = await this.#runState.value();
    } catch (error) {
      trouble = `The works of the run cannot be read now, and the page shows the last ones: ${messageOf(error)}`;
    }
    return { ...(await this.#hub.read()), run: this.#lastRun, trouble };
  }

  /** Later reads return the state at this instant. To be called before the hub and the manifest are closed. */
  async runEnded(state: "ended" | "interrupted"): Promise<void> {
    const last = await this.read();
    const run = last.run && { ...last.run, state, endedMs: this.#time.wallMs(), isPaused: false, timeLeftMs: null };
    this.#final = { ...last, run, trouble: ENDED };
  }

  explain(name: string, role: string): readonly ExplainedValue[] {
    return this.#hub.explain(name, role);
  }

  async workHistory(key: string): Promise<WorkHistoryState | undefined> {
    if (this.#final !== undefined) throw new RangeError("the run has ended, and its manifest is closed");
    return this.#run.manifest.reports.workHistory(key);
  }

  setWatched(isWatched: boolean): void {
    this.#hub.setWatched(isWatched);
  }

  close(): Promise<void> {
    return this.#hub.close();
  }
}
