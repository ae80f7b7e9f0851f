import type { Role } from "../policy/roles.ts";
import type { Lane } from "./budget.ts";

interface WindowSnapshot {
  readonly rate: string;
  readonly used: number;
  readonly limit: number;
  /** The server has announced it, and the policy would allow more. */
  readonly isLearned: boolean;
}

/** A lane as it stands, for tables and tests. */
export interface LaneSnapshot {
  readonly host: string;
  readonly role: Role;
  /** Those in force: the policy's, and what its server has announced beyond them. */
  readonly windows: readonly WindowSnapshot[];
  readonly acquired: number;
  readonly refused: number;
  readonly headSkipped: number;
  readonly inFlight: number;
  /** As in force; Infinity for no cap. */
  readonly maxConcurrent: number;
  readonly waiting: number;
  /** Milliseconds until the next request could go; 0 for now. Slots are left out. */
  readonly nextFreeMs: number;
  readonly multiplier: number;
  readonly guardMs: number;
  readonly shape: "burst" | "smooth";
}

export function snapshotOf(lane: Lane, waiting: number, nowUs: number): LaneSnapshot {
  const { name: host, role, policy, configured, pace, log, acquired, refused, headSkipped, inFlight } = lane;
  return {
    host,
    role,
    windows: lane.windows.map((window, index) => ({
      rate: policy.labels[index] ?? "",
      used: log.usedUnits(index, window, nowUs),
      limit: window.limit,
      isLearned: policy.rates[index] !== configured.rates[index],
    })),
    acquired,
    refused,
    headSkipped,
    inFlight,
    maxConcurrent: policy.maxConcurrent,
    waiting,
    nextFreeMs: Math.max(0, Math.ceil((lane.earliestUs(1, nowUs) - nowUs) / 1000)),
    multiplier: pace?.multiplier ?? 1,
    guardMs: (pace?.guardUs ?? policy.guardUs) / 1000,
    shape: lane.spacingUs > 0 ? "smooth" : "burst",
  };
}
