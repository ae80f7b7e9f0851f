import type { ExplainedValue } from "../policy/explanation.ts";
import type { DashboardActions } from "./actions.ts";
import type { AskResult, DashboardState, WorkHistoryState } from "./dashboard-state.ts";
import type { EventLog } from "./event-log.ts";

/** The state at one instant, without the fields that the dashboard adds. */
export interface SourceState extends Omit<DashboardState, "nowMs" | "about" | "trouble"> {
  /** What is missing or not as it is now, and why. @default nothing */
  readonly trouble?: string | null;
}

/** Where a dashboard reads its state from: a hub, a store, or the folder of a run. */
export interface DashboardSource {
  readonly about: Omit<DashboardState["about"], "actions" | "actionToken" | "canAsk">;
  /** Undefined if the source cannot be changed. */
  readonly actions: DashboardActions | undefined;
  /** The events that the page shows; actions are recorded there. */
  readonly log: EventLog;
  /** Rejects when the source cannot be read now; the page then shows the last state and the message. */
  read(): Promise<SourceState>;
  /**
   * The values of the policy for a host or service and a role, with their sources. Throws a RangeError for bad names,
   * or rejects with it.
   */
  explain(name: string, role: string): readonly ExplainedValue[] | Promise<readonly ExplainedValue[]>;
  /**
   * Asks the processes to list a host or service that their lists may lack, and waits for them. Undefined if every host
   * is listed, or if processes cannot be asked. Rejects with a RangeError for a text that names no host or service.
   */
  readonly ask?: ((name: string) => Promise<AskResult>) | undefined;
  /** The attempts for a work of the run. Undefined if the source has no run, or the run does not have this work. */
  workHistory?(key: string): Promise<WorkHistoryState | undefined>;
  /** Called with true when a page connects, and with false when the last one is gone. */
  setWatched(isWatched: boolean): void;
  close(): Promise<void>;
}
