import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunningProcess, SharedBreakerStatus } from "../../http/operator.ts";
import { breakerRows } from "./breaker-rows.ts";

const NOW = { wallMs: Date.UTC(2026, 0, 1, 12), windowUs: 30e6 };

function report(name: string, known: Partial<SharedBreakerStatus> = {}): SharedBreakerStatus {
  return {
    kind: "host",
    name,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    cooldownMs: 0,
    circuits: [],
    ...known,
  };
}

/** A process that has counted failures, and said so some time ago. */
function counting(host: string, windowFailures: number, agoMs: number): RunningProcess {
  const status = {
    host,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    openUntilWallMs: undefined,
    roles: [],
  } as const;
  return {
    processId: `${host} ${agoMs}`,
    pid: 1,
    machine: "box",
    program: "harvest.ts",
    startedMs: 0,
    writtenMs: NOW.wallMs - agoMs,
    snapshot: { calls: 0, inFlight: 0, waiting: 0, lanes: [], hosts: [{ ...status, windowFailures }] },
  };
}

test("the end of a cooldown is told in UTC, and that it shuts every role", () => {
  const known = { state: "open", reason: "retry-after", remainingMs: 90_000, cooldownMs: 90_000 } as const;
  const [row] = breakerRows([report("a.example", known)], [], NOW);
  assert.equal(row?.openUntil, "2026-01-01T12:01:30.000Z");
  assert.deepEqual(row?.roles, ["all"]);
});

test("of circuits only those that are not closed are named, and their probes are added up", () => {
  const circuits = [
    { name: "metadata", state: "half_open", remainingMs: 0, probes: 1 },
    { name: "artifact", state: "half_open", remainingMs: 0, probes: 2 },
    { name: "landing", state: "closed", remainingMs: 0, probes: 0 },
  ] as const;
  const [row] = breakerRows([report("a.example", { state: "half_open", reason: "failures", circuits })], [], NOW);
  assert.deepEqual(row?.roles, ["metadata", "artifact"]);
  assert.equal(row?.probes, 3);
  assert.equal(row?.openUntil, null);
});

test("failures are counted by each process for itself, so the most of one is told", () => {
  const processes = [counting("a.example", 2, 0), counting("a.example", 4, 100)];
  const [row] = breakerRows([report("a.example")], processes, NOW);
  assert.equal(row?.windowFailures, 4);
});

test("a host that has failed and is not open yet is shown, too", () => {
  const rows = breakerRows([], [counting("b.example", 3, 0)], NOW);
  assert.deepEqual(
    rows.map(({ name, state, windowFailures }) => [name, state, windowFailures]),
    [["b.example", "closed", 3]],
  );
});

test("what a process said longer ago than a failure counts is over", () => {
  assert.deepEqual(breakerRows([], [counting("b.example", 3, 30_000)], NOW), []);
});

test("the worst come first, then by name", () => {
  const rows = breakerRows(
    [report("c"), report("b", { state: "half_open" }), report("d", { state: "open" }), report("a", { state: "open" })],
    [],
    NOW,
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["a", "d", "b", "c"],
  );
});
