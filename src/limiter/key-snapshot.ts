import type { Constraint } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { Lane } from "./budget.ts";
import { type Forecast, freeUs } from "./estimate.ts";

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
  /** Milliseconds until every window on the way has room for one; 0 for now. Slots are left out. */
  readonly nextFreeMs: number;
  /** Milliseconds until one that came now could go, behind those who wait. A forecast; slots are left out. */
  readonly newcomerMs: number;
  /** What would keep it waiting; undefined where it could go at once. */
  readonly constraint: Constraint | undefined;
  readonly multiplier: number;
  readonly guardMs: number;
  readonly shape: "burst" | "smooth";
}

/** What the gate knows of a lane that the lane does not. */
interface Surroundings {
  waitingAt(lane: Lane): number;
  forecast(lane: Lane, nowUs: number): Forecast;
}

export function snapshotOf(lane: Lane, gate: Surroundings, nowUs: number): LaneSnapshot {
  const { name: host, role, policy, configured, pace, log, acquired, refused, headSkipped, inFlight } = lane;
  const { readyUs, constraint } = gate.forecast(lane, nowUs);
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
    waiting: gate.waitingAt(lane),
    nextFreeMs: Math.ceil((freeUs(lane, 1, nowUs) - nowUs) / 1000),
    newcomerMs: Math.ceil((readyUs - nowUs) / 1000),
    constraint,
    multiplier: pace?.multiplier ?? 1,
    guardMs: (pace?.guardUs ?? policy.guardUs) / 1000,
    shape: lane.spacingUs > 0 ? "smooth" : "burst",
  };
}
