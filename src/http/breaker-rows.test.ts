import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedBreakerStatus } from "../breaker/host-status.ts";
import { breakerRows } from "./breaker-rows.ts";
import type { RunningProcess } from "./observer.ts";

const NOW = { wallMs: Date.UTC(2026, 0, 1, 12), windowUs: 30e6 };

function status(name: string, known: Partial<SharedBreakerStatus> = {}): SharedBreakerStatus {
  return {
    kind: "host",
    name,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    cooldownMs: 0,
    cooldownReason: undefined,
    circuits: [],
    ...known,
  };
}

/** A process that published its failure count some time ago. */
function counting(host: string, windowFailures: number, agoMs: number): RunningProcess {
  const hostStatus = {
    host,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    openUntilWallMs: undefined,
    cooldownMs: 0,
    roles: [],
  } as const;
  return {
    processId: `${host} ${agoMs}`,
    pid: 1,
    machine: "box",
    program: "harvest.ts",
    startedMs: 0,
    writtenMs: NOW.wallMs - agoMs,
    snapshot: { calls: 0, inFlight: 0, waiting: 0, keys: [], hosts: [{ ...hostStatus, windowFailures }] },
  };
}

test("a cooldown has its end in UTC, and applies to all roles", () => {
  const known = {
    state: "open",
    reason: "retry-after",
    remainingMs: 90_000,
    cooldownMs: 90_000,
    cooldownReason: "retry-after",
  } as const;
  const [row] = breakerRows([status("a.example", known)], [], NOW);
  assert.equal(row?.openUntil, "2026-01-01T12:01:30.000Z");
  assert.deepEqual(row?.roles, ["all"]);
});

test("only circuits that are not closed are named, and their trial calls are added up", () => {
  const circuits = [
    { name: "metadata", state: "half_open", remainingMs: 0, probes: 1, reason: undefined },
    { name: "artifact", state: "half_open", remainingMs: 0, probes: 2, reason: undefined },
    { name: "landing", state: "closed", remainingMs: 0, probes: 0, reason: undefined },
  ] as const;
  const [row] = breakerRows([status("a.example", { state: "half_open", reason: "failures", circuits })], [], NOW);
  assert.deepEqual(row?.roles, ["metadata", "artifact"]);
  assert.equal(row?.probes, 3);
  assert.equal(row?.openUntil, null);
});

test("each process counts its own failures, so the highest count is shown", () => {
  const processes = [counting("a.example", 2, 0), counting("a.example", 4, 100)];
  const [row] = breakerRows([status("a.example")], processes, NOW);
  assert.equal(row?.windowFailures, 4);
});

test("a host with failures whose circuit is still closed is shown", () => {
  const rows = breakerRows([], [counting("b.example", 3, 0)], NOW);
  assert.deepEqual(
    rows.map(({ name, state, windowFailures }) => [name, state, windowFailures]),
    [["b.example", "closed", 3]],
  );
});

test("failures older than the rolling window are not counted", () => {
  assert.deepEqual(breakerRows([], [counting("b.example", 3, 30_000)], NOW), []);
});

test("open circuits come first, then half-open, then by name", () => {
  const rows = breakerRows(
    [status("c"), status("b", { state: "half_open" }), status("d", { state: "open" }), status("a", { state: "open" })],
    [],
    NOW,
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["a", "d", "b", "c"],
  );
});
