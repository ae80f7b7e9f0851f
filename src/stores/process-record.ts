import type { AppliedOrders } from "./order-log.ts";

/** The status that a running process publishes in the store for operators (law S6). */
export interface ProcessRecord<Snapshot> {
  readonly pid: number;
  /** Host name of the machine. */
  readonly machine: string;
  /** The name of the main file of the process. */
  readonly program: string;
  /** Start of the process, in epoch milliseconds of its own clock. */
  readonly startedMs: number;
  /** When the record was written, in epoch milliseconds of the same clock. */
  readonly writtenMs: number;
  readonly snapshot: Snapshot;
  /** Identifies its policy, which is the record `policy <hash>`. Absent in records of older versions. */
  readonly configHash?: string | undefined;
  /** The orders of operators that it has applied. Absent in records of older versions. */
  readonly orders?: AppliedOrders | undefined;
}

export const PROCESS_PREFIX = "process ";
export const POLICY_PREFIX = "policy ";
/** How long the record of a policy is kept. A process renews it after half of this, unless another process just has. */
export const POLICY_RECORD_US = 3_600_000_000;
/** A process that has made no call for this long is no longer listed. */
export const PROCESS_RECORD_US = 60_000_000;
