import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostState, ProcessState } from "./dashboard-state.ts";
import { type SeenState, seenChanges } from "./seen-changes.ts";

function host(name: string, known: Partial<HostState> = {}): HostState {
  const base = {
    kind: "host",
    state: "closed",
    reason: null,
    untilMs: null,
    isCooling: false,
    windowFailures: 0,
  } as const;
  return { name, ...base, circuits: [], keys: [], attention: 0, why: "", ...known };
}

function process(id: string): ProcessState {
  const counts = { calls: 0, inFlight: 0, waiting: 0, keys: 0, isPartial: false };
  return { id, pid: 7, machine: "m1", program: "app.js", startedMs: 0, writtenMs: 0, ...counts };
}

function seen(hosts: readonly HostState[], processes: readonly ProcessState[] = []): SeenState {
  return { hosts: new Map(hosts.map(one => [one.name, one])), processes };
}

const texts = (before: SeenState, after: SeenState) =>
  seenChanges(before, after).map(({ host: name, text }) => `${name} ${text}`.trim());

test("a circuit that opens, closes or disappears makes a line, an unchanged one does not", () => {
  const open = host("a.example", { state: "open", reason: "failures" });
  assert.deepEqual(texts(seen([host("a.example")]), seen([open])), ["a.example circuit closed → open: failures"]);
  assert.deepEqual(texts(seen([]), seen([open])), ["a.example circuit closed → open: failures"]);
  assert.deepEqual(texts(seen([open]), seen([open])), []);
  assert.deepEqual(texts(seen([open]), seen([host("a.example")])), ["a.example circuit open → closed"]);
  assert.deepEqual(texts(seen([open]), seen([])), ["a.example circuit open → closed"]);
  const ordered = host("a.example", { state: "open", reason: "opened by operator: x" });
  assert.deepEqual(texts(seen([open]), seen([ordered])), ["a.example circuit open → open: opened by operator: x"]);
});

test("a process that appears or disappears makes a line", () => {
  assert.deepEqual(texts(seen([], [process("1")]), seen([], [process("2")])), [
    "process app.js (pid 7 on m1) is listed",
    "process app.js (pid 7 on m1) has ended or is idle",
  ]);
});
