import type { Constraint } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { RoleBudget } from "./budget.ts";
import { freeUs, type WaitEstimate } from "./estimate.ts";

interface WindowSnapshot {
  readonly rate: string;
  readonly used: number;
  readonly limit: number;
  /** The server has announced it, and the policy would allow more. */
  readonly isLearned: boolean;
}

/** A lane as it stands, for tables and tests. */
export interface KeySnapshot {
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
  readonly estimatedWaitMs: number;
  /** What would keep it waiting; undefined where it could go at once. */
  readonly constraint: Constraint | undefined;
  readonly multiplier: number;
  readonly guardMs: number;
  readonly shape: "burst" | "smooth";
}

/** What the gate knows of a lane that the lane does not. */
interface SnapshotSource {
  waitingAt(roleBudget: RoleBudget): number;
  estimate(roleBudget: RoleBudget, nowUs: number): WaitEstimate;
}

export function keySnapshotOf(roleBudget: RoleBudget, gate: SnapshotSource, nowUs: number): KeySnapshot {
  const { name: host, role, policy, configured, pace, log, acquired, refused, headSkipped, inFlight } = roleBudget;
  const { readyUs, constraint } = gate.estimate(roleBudget, nowUs);
  return {
    host,
    role,
    windows: roleBudget.windows.map((window, index) => ({
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
    waiting: gate.waitingAt(roleBudget),
    nextFreeMs: Math.ceil((freeUs(roleBudget, 1, nowUs) - nowUs) / 1000),
    estimatedWaitMs: Math.ceil((readyUs - nowUs) / 1000),
    constraint,
    multiplier: pace?.multiplier ?? 1,
    guardMs: (pace?.guardUs ?? policy.guardUs) / 1000,
    shape: roleBudget.spacingUs > 0 ? "smooth" : "burst",
  };
}
