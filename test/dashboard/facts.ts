/** Keys and hosts as snapshots have them, with the fields that a test needs. */
import type { HostStatus } from "../../src/breaker/host-status.ts";
import type { KeyFact } from "../../src/dashboard/host-states.ts";
import type { KeySnapshot } from "../../src/limiter/key-snapshot.ts";

export function key(name: string, known: Partial<KeySnapshot> = {}): KeySnapshot {
  const shown: KeyFact = {
    key: name,
    role: "metadata",
    windows: [{ rate: "10/SECOND", unit: "requests", used: 3, limit: 10, isLearned: false }],
    acquired: 12,
    refused: 0,
    inFlight: 1,
    maxConcurrent: 100,
    waiting: 0,
    estimatedWaitMs: 0,
    constraint: undefined,
    multiplier: 1,
    guardMs: 25,
    shape: "burst",
  };
  // The dashboard reads no other fields.
  return { ...shown, ...known } as KeySnapshot;
}

export function hostStatus(host: string, known: Partial<HostStatus> = {}): HostStatus {
  return {
    host,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    openUntilWallMs: undefined,
    cooldownMs: 0,
    windowFailures: 0,
    roles: [],
    ...known,
  };
}
