import assert from "node:assert/strict";
import { test } from "node:test";
import { type BreakerFacts, hostStates, type KeyFact } from "./host-states.ts";

const NOW_MS = Date.UTC(2026, 0, 1, 12);

function key(name: string, known: Partial<KeyFact> = {}): KeyFact {
  return {
    key: name,
    role: "metadata",
    windows: [{ rate: "10/SECOND", unit: "requests", used: 1, limit: 10, isLearned: false }],
    acquired: 1,
    refused: 0,
    inFlight: 0,
    maxConcurrent: Number.POSITIVE_INFINITY,
    waiting: 0,
    estimatedWaitMs: 0,
    constraint: undefined,
    multiplier: 1,
    guardMs: 25,
    shape: "burst",
    ...known,
  };
}

function breaker(name: string, known: Partial<BreakerFacts> = {}): BreakerFacts {
  return {
    kind: "host",
    name,
    state: "closed",
    reason: null,
    remainingMs: 0,
    isCooling: false,
    windowFailures: 0,
    circuits: [],
    ...known,
  };
}

const queued = (name: string, waiting: number, ms: number) =>
  key(name, {
    waiting,
    estimatedWaitMs: ms,
    constraint: { kind: "window", owner: name, limit: "10/SECOND" },
  });

test("hosts are sorted by the attention they need: open, half-open, slowed, queued, failing, nearly full, idle", () => {
  const hosts = hostStates(
    [
      breaker("failing.example", { windowFailures: 2 }),
      breaker("open.example", { state: "open", reason: "failures", remainingMs: 5000 }),
      breaker("trial.example", { state: "half_open", reason: "failures" }),
    ],
    [
      {
        ageMs: 0,
        keys: [
          key("idle.example"),
          key("busy.example", {
            windows: [{ rate: "10/SECOND", unit: "requests", used: 10, limit: 10, isLearned: false }],
          }),
          key("full.example", {
            windows: [{ rate: "500/HOUR", unit: "requests", used: 480, limit: 500, isLearned: false }],
          }),
          queued("short.example", 3, 400),
          queued("long.example", 2, 9000),
          key("slow.example", { multiplier: 0.5 }),
          key("held.example", {
            estimatedWaitMs: 60_000,
            constraint: { kind: "cooldown", owner: "held.example", limit: "cooldown" },
          }),
        ],
      },
    ],
    NOW_MS,
  );
  assert.deepEqual(
    hosts.map(({ name, why }) => `${name}: ${why}`),
    [
      "open.example: circuit open: failures",
      "trial.example: half-open: trial calls decide",
      "held.example: metadata in cooldown",
      "slow.example: metadata slowed to 50 %",
      "long.example: 2 queued for 10/SECOND",
      "short.example: 3 queued for 10/SECOND",
      "failing.example: 2 recent failures",
      "full.example: 96 % of 500/HOUR used",
      "busy.example: ",
      "idle.example: ",
    ],
  );
});

test("the slots of processes are added up, unless all processes share them", () => {
  const shown = (...caps: readonly Partial<KeyFact>[]) => {
    const processes = caps.map(cap => ({ ageMs: 0, keys: [key("a.example", { inFlight: 4, ...cap })] }));
    const [joined] = hostStates([], processes, NOW_MS)[0]?.keys ?? [];
    return [joined?.inFlight, joined?.maxConcurrent];
  };
  assert.deepEqual(shown({ maxConcurrent: 10 }, { maxConcurrent: 10 }, { maxConcurrent: 10 }), [12, 30]);
  const shared = { maxConcurrent: 10, sharesSlots: true };
  assert.deepEqual(shown(shared, shared), [8, 10]);
  assert.deepEqual(shown({ maxConcurrent: 10 }, {}), [8, null]);
});

test("the usage of a key is added up over processes, and its other fields have the worst value", () => {
  const constraint = { kind: "window", owner: "service x", limit: "50/MINUTE" } as const;
  const decidedBy = { limit: "50/MINUTE", value: "50/MINUTE", where: "ratelimits.yaml:7", mode: "enforce" } as const;
  const [host] = hostStates(
    [],
    [
      { ageMs: 0, keys: [key("a.example", { inFlight: 1, maxConcurrent: 4, multiplier: 0.8 })] },
      {
        ageMs: 300,
        keys: [
          {
            ...key("a.example", {
              inFlight: 2,
              maxConcurrent: 4,
              waiting: 1,
              estimatedWaitMs: 900,
              guardMs: 50,
              constraint,
            }),
            decidedBy,
          },
        ],
      },
    ],
    NOW_MS,
  );
  const [joined] = host?.keys ?? [];
  assert.deepEqual(joined, {
    role: "metadata",
    windows: [{ rate: "10/SECOND", used: 2, limit: 10, isLearned: false }],
    acquired: 2,
    refused: 0,
    inFlight: 3,
    maxConcurrent: 8,
    waiting: 1,
    newCallMs: 600,
    limitedBy: "50/MINUTE of service x",
    decidedBy: "ratelimits.yaml:7",
    isHeld: false,
    hold: null,
    order: null,
    totalOrder: null,
    pace: 0.8,
    guardMs: 50,
    shape: "burst",
    processes: 2,
  });
});

test("the end of an open circuit keeps its instant while time passes, and changes when it is extended", () => {
  const open = (remainingMs: number) => [breaker("a.example", { state: "open", reason: "failures", remainingMs })];
  const first = hostStates(open(10_000), [], NOW_MS);
  const known = new Map(first.map(host => [host.name, host]));
  const later = hostStates(open(8990), [], NOW_MS + 1000, known);
  assert.deepEqual(later, first);
  const extended = hostStates(open(20_000), [], NOW_MS + 1000, known);
  assert.equal(extended[0]?.untilMs, NOW_MS + 21_000);
});

test("services and resolvers are named as such, and an operator's reason is readable", () => {
  const hosts = hostStates(
    [
      breaker("service ols", { state: "open", reason: "cli-open:maintenance", remainingMs: 1 }),
      breaker("landing_page", { kind: "resolver", state: "open", reason: "failures", remainingMs: 1 }),
    ],
    [],
    NOW_MS,
  );
  assert.deepEqual(
    hosts.map(({ name, kind, reason }) => ({ name, kind, reason })),
    [
      { name: "resolver landing_page", kind: "resolver", reason: "failures" },
      { name: "service ols", kind: "service", reason: "opened by operator: maintenance" },
    ],
  );
});
