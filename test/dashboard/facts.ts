/** Keys and hosts as snapshots have them, with the fields that a test needs. */
import type { HostStatus } from "../../src/breaker/host-status.ts";
import type { KeySnapshot } from "../../src/limiter/key-snapshot.ts";

export function key(name: string, known: Partial<KeySnapshot> = {}): KeySnapshot {
  return {
    key: name,
    role: "metadata",
    windows: [{ rate: "10/SECOND", unit: "requests", used: 3, limit: 10, isLearned: false }],
    acquired: 12,
    refused: 0,
    headSkipped: 0,
    inFlight: 1,
    maxConcurrent: 100,
    waiting: 0,
    nextFreeMs: 0,
    estimatedWaitMs: 0,
    constraint: undefined,
    learnedFrom: undefined,
    multiplier: 1,
    guardMs: 25,
    shape: "burst",
    ...known,
  };
}

export function hostStatus(host: string, known: Partial<HostStatus> = {}): HostStatus {
  return {
    host,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    openUntilWallMs: undefined,
    windowFailures: 0,
    roles: [],
    ...known,
  };
}
