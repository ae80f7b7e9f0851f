/** What a running process leaves in the store for operators to look at (law S6). */
export interface ProcessNote<Snapshot> {
  readonly pid: number;
  /** The machine. */
  readonly machine: string;
  /** What is run: the name of its main file. */
  readonly program: string;
  /** Epoch milliseconds, by the clock of the process. */
  readonly startedMs: number;
  readonly writtenMs: number;
  readonly snapshot: Snapshot;
}

export const PROCESS = "process ";
/** One that has had nothing to do for so long is listed no more. */
export const SEEN_US = 60_000_000;
