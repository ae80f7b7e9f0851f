import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedBreakerStatus } from "../../breaker/host-status.ts";
import { parseRates } from "../../core/limits/rate.ts";
import { type Constraint, PROBE_IN_FLIGHT } from "../../errors.ts";
import type { CacheInspection } from "../../http/cache/cache-inspection.ts";
import { roleBudgetPolicy } from "../../policy/budget-policy.ts";
import type { CacheFacts, PolicyFacts, ProcessFacts, SharedFacts } from "./why-facts.ts";
import { whyVerdict } from "./why-verdict.ts";

const host = "a.example";
const roleBudget = roleBudgetPolicy({ rates: parseRates("4/SECOND+7200/HOUR"), max_delay_ms: 1000, guard_ms: 0 });
const policy: PolicyFacts = {
  url: new URL(`https://${host}/`),
  role: "metadata",
  host,
  sentKeys: undefined,
  withheldKeys: "",
  route: { name: host, roleBudget, above: [] },
  breakers: { host, circuit: host, cooldown: host },
  isListed: true,
  trialCalls: 1,
  isBreakerShadow: false,
  values: [],
};
const unread: CacheFacts = { kind: "unread", reason: "" };
const window: Constraint = { kind: "window", owner: host, limit: "4/SECOND" };

function connected(
  report: Partial<SharedBreakerStatus> = {},
  ...processes: readonly Partial<ProcessFacts>[]
): SharedFacts {
  const closed = {
    kind: "host",
    name: host,
    state: "closed",
    reason: undefined,
    remainingMs: 0,
    cooldownMs: 0,
    cooldownReason: undefined,
    circuits: [],
  } as const;
  const idle = {
    pid: 7,
    program: "x",
    maxDelayMs: 1000,
    ageMs: 0,
    readyMs: 0,
    constraint: undefined,
    decidedBy: null,
    waiting: 0,
    inFlight: 0,
    windowFailures: 0,
    learnedFrom: undefined,
    order: undefined,
    totalOrder: undefined,
  };
  return {
    kind: "connected",
    partitions: [],
    unknown: [],
    store: "sqlite:x",
    hold: undefined,
    report: { ...closed, ...report },
    processes: processes.map(one => ({ ...idle, ...one })),
  };
}

function stored(look: Partial<CacheInspection>): CacheFacts {
  const fresh = { status: 200, verdict: "fresh", ageMs: 0, freshMs: 5000, mayServeOnError: false, varies: [] } as const;
  return { kind: "read", found: [{ ...fresh, ...look }] };
}

function verdict(shared: SharedFacts, cache = unread) {
  const { kind, sendInMs, constraint, text } = whyVerdict("metadata", policy, shared, cache);
  assert.match(text, /\.$/);
  return [kind, sendInMs, constraint?.kind ?? null];
}

const cooled = (ms: number) =>
  ({ state: "open", remainingMs: ms, cooldownMs: ms, cooldownReason: "retry-after" }) as const;
const circuit = (state: "open" | "half_open", remainingMs: number, probes = 0) => ({
  circuits: [{ name: "metadata", state, remainingMs, probes, reason: "failures" }],
});

test("without a limit in the way the request is sent", () => {
  assert.deepEqual(verdict(connected()), ["send", 0, null]);
  assert.deepEqual(verdict(connected({}, {})), ["send", 0, null]);
});

test("without a shared store the verdict is that of a new process, with its steady rate", () => {
  const alone = { kind: "unknown", reason: "" } as const;
  assert.deepEqual(verdict(alone), ["send", 0, null]);
  assert.match(
    whyVerdict("metadata", policy, alone, unread).text,
    /one request every 500 ms when its windows are full \(7200\/HOUR\)\. The state of running processes is unknown/,
  );
});

test("a request waits for a full window up to max_delay_ms, and is refused beyond it", () => {
  assert.deepEqual(verdict(connected({}, { readyMs: 1000, constraint: window })), ["wait", 1000, "window"]);
  assert.deepEqual(verdict(connected({}, { readyMs: 1001, constraint: window })), ["refuse", 1001, "window"]);
});

test("the wait for a concurrency slot cannot be estimated", () => {
  const slots = { kind: "concurrency", owner: host, limit: "max_concurrent 1" } as const;
  assert.deepEqual(verdict(connected({}, { constraint: slots })), ["wait", null, "concurrency"]);
});

test("the max_delay_ms of the process that would send the request decides whether it waits", () => {
  const first = { readyMs: 900, constraint: window, maxDelayMs: 500 };
  assert.deepEqual(verdict(connected({}, first)), ["refuse", 900, "window"]);
  assert.match(whyVerdict("metadata", policy, connected({}, first), unread).text, /the call waits at most 500 ms/);
});

test("a request waits for the calls with which traffic resumes after a cooldown, whatever its max_delay_ms", () => {
  const rampUp = { kind: "breaker", owner: host, limit: "ramp-up after a cooldown (1 in flight)" } as const;
  const facts = connected({}, { readyMs: 5000, constraint: rampUp });
  assert.deepEqual(verdict(facts), ["wait", null, "breaker"]);
  assert.equal(
    whyVerdict("metadata", policy, facts, unread).text,
    "Waits for the answers of other calls in process 7: ramp-up after a cooldown (1 in flight) of a.example. The wait cannot be estimated.",
  );
});

test("a process that waits for its breaker does not stop a request whose breaker is in shadow mode", () => {
  const open = { kind: "breaker", owner: host, limit: "open circuit (failures)" } as const;
  const facts = connected({}, { readyMs: 5000, constraint: open });
  const { kind, text } = whyVerdict("metadata", { ...policy, isBreakerShadow: true }, facts, unread);
  assert.equal(kind, "send");
  assert.match(text, /^Sent at once\. Shadow mode only reports: Refused by process 7: open circuit/);
});

test("the wait for units that the processes have used together cannot be estimated", () => {
  const facts = connected({}, { constraint: window, isUsedUp: true });
  assert.deepEqual(verdict(facts), ["wait", null, "window"]);
  assert.match(
    whyVerdict("metadata", policy, facts, unread).text,
    /^Waits or is refused: the processes together have used all units of 4\/SECOND of a\.example\./,
  );
});

test("a request waits for a cooldown up to max_delay_ms, and is refused beyond it", () => {
  assert.deepEqual(verdict(connected(cooled(900))), ["wait", 900, "breaker"]);
  assert.deepEqual(verdict(connected(cooled(1001))), ["refuse", null, "breaker"]);
});

test("of a cooldown and a full window the one that ends later decides", () => {
  assert.deepEqual(verdict(connected(cooled(300), { readyMs: 400, constraint: window })), ["wait", 400, "window"]);
  assert.deepEqual(verdict(connected(cooled(500), { readyMs: 400, constraint: window })), ["wait", 500, "breaker"]);
});

test("an open circuit refuses its own role only", () => {
  const open = connected(circuit("open", 45_000));
  assert.deepEqual(verdict(open), ["refuse", null, "breaker"]);
  assert.equal(whyVerdict("landing", policy, open, unread).kind, "send");
});

test("a half-open circuit sends the request as a trial call; if one is in flight, the request waits for it", () => {
  assert.deepEqual(verdict(connected(circuit("half_open", 0))), ["probe", 0, null]);
  assert.deepEqual(verdict(connected(circuit("half_open", 0, 1))), ["wait", null, "breaker"]);
  const failFast = connected(circuit("half_open", 0, 1), { maxDelayMs: 0 });
  assert.deepEqual(verdict(failFast), ["refuse", null, "breaker"]);
  const late = connected(circuit("half_open", 0, 1), { readyMs: 1001, constraint: window });
  assert.deepEqual(verdict(late), ["refuse", 1001, "window"]);
});

test("the constraint of a circuit is named as in a refusal of the hub", () => {
  const limitOf = (shared: SharedFacts) => whyVerdict("metadata", policy, shared, unread).constraint?.limit;
  assert.equal(limitOf(connected(circuit("half_open", 0, 1))), PROBE_IN_FLIGHT);
  assert.equal(limitOf(connected(circuit("open", 2000))), "open circuit (failures)");
  assert.equal(limitOf(connected(cooled(2000))), "open circuit (retry-after)");
});

test("a fresh cached response is served while its host is in cooldown", () => {
  assert.deepEqual(verdict(connected(cooled(60_000)), stored({})), ["cached", null, null]);
  assert.deepEqual(verdict(connected(cooled(60_000)), stored({ verdict: "stale-while-revalidate", freshMs: -1 })), [
    "cached",
    null,
    null,
  ]);
});

test("a stale response is revalidated, and served only if the request is refused and the server permits it", () => {
  const stale = { verdict: "revalidate", freshMs: -1 } as const;
  assert.deepEqual(verdict(connected(), stored(stale)), ["send", 0, null]);
  assert.deepEqual(verdict(connected(cooled(60_000)), stored(stale)), ["refuse", null, "breaker"]);
  assert.deepEqual(verdict(connected(cooled(60_000)), stored({ ...stale, mayServeOnError: true })), [
    "cached",
    null,
    "breaker",
  ]);
});

test("a cached response that varies by request header is only mentioned", () => {
  const { kind, text } = whyVerdict("metadata", policy, connected(), stored({ varies: ["accept"] }));
  assert.equal(kind, "send");
  assert.match(text, /A request with the same accept is served from the cache\.$/);
});

test("in shadow mode a request is sent, and the text says what would have happened", () => {
  const shadowed = { ...policy, route: { ...policy.route, roleBudget: { ...roleBudget, isShadow: true } } };
  const full = connected({}, { readyMs: 5000, constraint: window });
  const limits = whyVerdict("metadata", shadowed, full, unread);
  assert.deepEqual([limits.kind, limits.sendInMs, limits.constraint], ["send", 0, null]);
  assert.match(limits.text, /^Sent at once\. Shadow mode only reports: Refused by process 7: rate limit/);
  const cooling = connected({ cooldownMs: 9000, cooldownReason: "retry-after" }, { readyMs: 5000, constraint: window });
  const breaker = whyVerdict("metadata", { ...policy, isBreakerShadow: true }, cooling, unread);
  assert.equal(breaker.kind, "refuse");
  assert.match(breaker.text, /^Refused by process 7: .* Shadow mode only reports: Refused: a\.example is in cooldown/);
  const both = whyVerdict("metadata", { ...shadowed, isBreakerShadow: true }, cooling, unread);
  assert.equal(both.kind, "send");
});

test("without a shared store the steady rate of a role in shadow mode is only reported", () => {
  const unknown: SharedFacts = { kind: "unknown", reason: "" };
  const shadowed = { ...policy, route: { ...policy.route, roleBudget: { ...roleBudget, isShadow: true } } };
  assert.match(
    whyVerdict("metadata", shadowed, unknown, unread).text,
    /at once\. Shadow mode only reports: one request every 500 ms when its windows are full/,
  );
});

test("a hold is enforced in shadow mode too, and the later of a hold and a window decides", () => {
  const shadowed = { ...policy, route: { ...policy.route, roleBudget: { ...roleBudget, isShadow: true } } };
  const constraint: Constraint = { kind: "cooldown", owner: host, limit: "hold (pause)" };
  const held = { ...connected({}, { readyMs: 5000, constraint: window }), hold: { constraint, remainingMs: 6000 } };
  for (const facts of [policy, shadowed]) {
    const verdict = whyVerdict("metadata", facts, held, unread);
    assert.deepEqual([verdict.kind, verdict.constraint], ["refuse", constraint]);
  }
  const shorter = { ...held, hold: { constraint, remainingMs: 900 } };
  assert.deepEqual(whyVerdict("metadata", policy, shorter, unread).constraint, window);
  const published = { ...connected({}, { readyMs: 5999, constraint }), hold: held.hold };
  assert.match(whyVerdict("metadata", policy, published, unread).text, /^Refused by process 7: hold \(pause\)/);
  const first = { ...connected(), hold: { constraint, remainingMs: 900 } };
  assert.equal(whyVerdict("metadata", policy, first, unread).text, "Waits 900 ms: hold (pause) of a.example.");
});

test("if a process has not published the key, the verdict says that its state is unknown", () => {
  const known = connected();
  assert.ok(known.kind === "connected");
  const shared = { ...known, unknown: [{ pid: 4711, program: "crawl.js" }] };
  const { kind, text } = whyVerdict("metadata", policy, shared, unread);
  assert.deepEqual(
    [kind, text],
    ["send", "Sent at once by a new process. The state of process 4711 is unknown: it has not published this key."],
  );
});
