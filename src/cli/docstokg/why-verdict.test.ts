import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRates } from "../../core/limits/rate.ts";
import type { Constraint } from "../../errors.ts";
import type { CacheInspection } from "../../http/cache/cache-inspection.ts";
import type { SharedBreakerStatus } from "../../http/operator.ts";
import { roleBudgetPolicy } from "../../policy/budget-policy.ts";
import type { CacheFacts, PolicyFacts, ProcessFacts, SharedFacts } from "./why-facts.ts";
import { steadySpacingMs, whyVerdict } from "./why-verdict.ts";

const host = "a.example";
const roleBudget = roleBudgetPolicy({ rates: parseRates("4/SECOND+7200/HOUR"), max_delay_ms: 1000, guard_ms: 0 });
const policy: PolicyFacts = {
  host,
  route: { name: host, roleBudget, above: [] },
  isListed: true,
  trialCalls: 1,
  values: [],
};
const unread: CacheFacts = { kind: "not-looked-at", because: "" };
const window: Constraint = { kind: "window", owner: host, limit: "4/SECOND" };

function met(report: Partial<SharedBreakerStatus> = {}, ...processes: readonly Partial<ProcessFacts>[]): SharedFacts {
  const well = {
    kind: "host",
    name: host,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    cooldownMs: 0,
    circuits: [],
  } as const;
  const idle = {
    pid: 7,
    program: "x",
    ageMs: 0,
    readyMs: 0,
    constraint: undefined,
    waiting: 0,
    inFlight: 0,
    windowFailures: 0,
  };
  return {
    kind: "met",
    place: "sqlite:x",
    report: { ...well, ...report },
    processes: processes.map(one => ({ ...idle, ...one })),
  };
}

function stored(look: Partial<CacheInspection>): CacheFacts {
  const fresh = { status: 200, verdict: "fresh", ageMs: 0, freshMs: 5000, mayServeOnError: false, varies: [] } as const;
  return { kind: "looked", found: [{ ...fresh, ...look }] };
}

function verdict(shared: SharedFacts, cache = unread) {
  const { kind, sendInMs, constraint, text } = whyVerdict("metadata", policy, shared, cache);
  assert.match(text, /\.$/);
  return [kind, sendInMs, constraint?.kind ?? null];
}

const cooled = (ms: number) => ({ state: "open", reason: "retry-after", remainingMs: ms, cooldownMs: ms }) as const;
const circuit = (state: "open" | "half_open", remainingMs: number, probes = 0) => ({
  circuits: [{ name: "metadata", state, remainingMs, probes }],
});

test("with nothing in the way it is sent", () => {
  assert.deepEqual(verdict(met()), ["send", 0, null]);
  assert.deepEqual(verdict(met({}, {})), ["send", 0, null]);
});

test("without a shared store it is what a new process would do, and its steady rate", () => {
  const alone = { kind: "unknown", because: "" } as const;
  assert.deepEqual(verdict(alone), ["send", 0, null]);
  assert.equal(steadySpacingMs(policy.route), 500, "7200 in an hour is the slower one");
  assert.match(
    whyVerdict("metadata", policy, alone, unread).text,
    /one each 500 ms .* Of running ones nothing is known/,
  );
});

test("a full window is waited for within the bound, and refused beyond it", () => {
  assert.deepEqual(verdict(met({}, { readyMs: 1000, constraint: window })), ["wait", 1000, "window"]);
  assert.deepEqual(verdict(met({}, { readyMs: 1001, constraint: window })), ["refuse", 1001, "window"]);
});

test("when a slot is freed nobody knows", () => {
  const slots = { kind: "concurrency", owner: host, limit: "max_concurrent 1" } as const;
  assert.deepEqual(verdict(met({}, { constraint: slots })), ["wait", null, "concurrency"]);
});

test("the same for a cooldown, whichever role asks", () => {
  assert.deepEqual(verdict(met(cooled(900))), ["wait", 900, "breaker"]);
  assert.deepEqual(verdict(met(cooled(1001))), ["refuse", null, "breaker"]);
});

test("of a cooldown and a full window the later one decides", () => {
  assert.deepEqual(verdict(met(cooled(300), { readyMs: 400, constraint: window })), ["wait", 400, "window"]);
  assert.deepEqual(verdict(met(cooled(500), { readyMs: 400, constraint: window })), ["wait", 500, "breaker"]);
});

test("an open circuit refuses its own role, and no other", () => {
  const open = met(circuit("open", 45_000));
  assert.deepEqual(verdict(open), ["refuse", null, "breaker"]);
  assert.equal(whyVerdict("landing", policy, open, unread).kind, "send");
});

test("a half-open circuit takes it as a trial call, unless one is under way", () => {
  assert.deepEqual(verdict(met(circuit("half_open", 0))), ["probe", 0, null]);
  assert.deepEqual(verdict(met(circuit("half_open", 0, 1))), ["refuse", null, "breaker"]);
});

test("what is fresh in the cache is served while its host is cut off", () => {
  assert.deepEqual(verdict(met(cooled(60_000)), stored({})), ["cached", null, null]);
  assert.deepEqual(verdict(met(cooled(60_000)), stored({ verdict: "stale-while-revalidate", freshMs: -1 })), [
    "cached",
    null,
    null,
  ]);
});

test("what is stale is asked for, and served only where that fails and its server permits it", () => {
  const stale = { verdict: "revalidate", freshMs: -1 } as const;
  assert.deepEqual(verdict(met(), stored(stale)), ["send", 0, null]);
  assert.deepEqual(verdict(met(cooled(60_000)), stored(stale)), ["refuse", null, "breaker"]);
  assert.deepEqual(verdict(met(cooled(60_000)), stored({ ...stale, mayServeOnError: true })), [
    "cached",
    null,
    "breaker",
  ]);
});

test("an answer that depends on fields of the request is promised to nobody", () => {
  const { kind, text } = whyVerdict("metadata", policy, met(), stored({ varies: ["accept"] }));
  assert.equal(kind, "send");
  assert.match(text, /Or it is answered from the cache, if it has the same accept\.$/);
});
