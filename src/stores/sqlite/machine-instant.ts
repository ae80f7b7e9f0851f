/** One moment by every clock of the machine (law B8). */
export interface MachineInstant {
  /** Identifies the start of the machine; empty if the system does not provide it. */
  readonly boot: string;
  /** Microseconds since the machine was started. */
  readonly machineUs: number;
  readonly wallMs: number;
}

/**
 * The number of microseconds to add to instants stored at `then`, so that they are instants of the machine's clock at
 * `now`. It is 0 if the machine has not been restarted. After a restart the wall clock shows how long ago `then` was;
 * if the wall clock was set back, `then` counts as now, never as the future.
 *
 * If `boot` is empty, only a `then` ahead of the clock shows a restart. After an unseen restart, stored instants seem
 * younger than they are, so that no record expires too early.
 */
export function shiftUs(then: MachineInstant, now: MachineInstant): number {
  if (then.boot === now.boot && then.machineUs <= now.machineUs) return 0;
  // One less: both readings are whole milliseconds, and a stored instant that seems younger is the safe error.
  const agoMs = Math.max(0, now.wallMs - then.wallMs - 1);
  return now.machineUs - agoMs * 1000 - then.machineUs;
}
