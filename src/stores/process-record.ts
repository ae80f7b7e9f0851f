/** What a running process leaves in the store for operators to look at (law S6). */
export interface ProcessRecord<Snapshot> {
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

export const PROCESS_PREFIX = "process ";
/** One that has had nothing to do for so long is listed no more. */
export const PROCESS_RECORD_US = 60_000_000;
