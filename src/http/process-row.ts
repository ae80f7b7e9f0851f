import type { DecidedBy } from "../errors.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import type { DecidedBySettings } from "../policy/decided-by.ts";
import { commonName } from "../policy/partition-name.ts";
import { tiersOfName } from "../policy/service-name.ts";
import { agedKey } from "./aged-key.ts";
import type { RunningProcess } from "./observer.ts";

/** A running process, with the status that it published last: its keys as they are now (`agedKey`). */
export interface ProcessRow extends Pick<RunningProcess, "pid" | "machine" | "program"> {
  /** Time since the status was published. */
  readonly ageMs: number;
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly keys: readonly ProcessKeyRow[];
  /** Whether the process has more keys: only the busiest ones are published. */
  readonly isPartial: boolean;
}

/** A key with the setting behind the limit that a new request would wait for. */
export interface ProcessKeyRow extends KeySnapshot {
  /** Null if a new request could start now. */
  readonly decidedBy: DecidedBy | null;
}

/** Whether an operator should see the key: it was used, or an order is in force for it. */
export function isWorthShowing(key: KeySnapshot): boolean {
  const { acquired, refused, waiting, inFlight, hold, order, totalOrder } = key;
  return acquired + refused + waiting + inFlight > 0 || (hold ?? order ?? totalOrder) !== undefined;
}

/** The age is never negative: the clock of another machine may be ahead of ours. */
export function processRow(
  { pid, machine, program, writtenMs, snapshot }: RunningProcess,
  wallMs: number,
  settings: DecidedBySettings,
): ProcessRow {
  const { calls, inFlight, waiting, isPartial = false } = snapshot;
  const ageMs = Math.max(0, wallMs - writtenMs);
  const keys = snapshot.keys.map(row => {
    const key = agedKey(row, { ageMs, calls });
    return { ...key, decidedBy: keyDecidedBy(key, settings) };
  });
  return { pid, machine, program, ageMs, calls, inFlight, waiting, keys, isPartial };
}

function keyDecidedBy(snapshot: KeySnapshot, settings: DecidedBySettings): DecidedBy | null {
  const { key, role, constraint } = snapshot;
  if (constraint === undefined) return null;
  // A partition has the limits of its host or service.
  const host = commonName(key);
  return settings.of(constraint, { host, role, sentKeys: new Set(tiersOfName(host)) }, snapshot);
}
