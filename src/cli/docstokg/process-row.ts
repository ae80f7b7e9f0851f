import type { RunningProcess } from "../../http/observer.ts";
import type { KeySnapshot } from "../../limiter/key-snapshot.ts";

/** A running process, with the status that it published last. */
export interface ProcessRow extends Pick<RunningProcess, "pid" | "machine" | "program"> {
  /** Time since the status was published. */
  readonly ageMs: number;
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly keys: readonly KeySnapshot[];
}

/** The age is never negative: the clock of another machine may be ahead of ours. */
export function processRow({ pid, machine, program, writtenMs, snapshot }: RunningProcess, wallMs: number): ProcessRow {
  const { calls, inFlight, waiting, keys } = snapshot;
  return { pid, machine, program, ageMs: Math.max(0, wallMs - writtenMs), calls, inFlight, waiting, keys };
}
