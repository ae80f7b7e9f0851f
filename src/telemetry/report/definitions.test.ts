import assert from "node:assert/strict";
import { test } from "node:test";
import { acquire, at, attempt, call, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import type { TelemetryEvent } from "../events.ts";
import { summarize } from "../summary/run-tally.ts";
import { NUMBER_DEFINITIONS } from "./definitions.ts";

const A = "a.example";
const B = "b.example";
const LINE = "10/SECOND (ratelimits.yaml:34)";
const throttled = { outcome: "throttled", breaker_recorded: "failure" } as const;
const change = { host: A, role: "metadata", reset_timeout_s: 30, last_rate_delay_ms: 0 } as const;

/** A run of one hour, small enough to be counted by hand. */
const events: readonly TelemetryEvent[] = [
  at(0, "run_started", { program: "test", version: "1" }),
  // 1: waits 40 ms for the rate and 10 ms for a slot, is sent in 100 ms.
  acquire(1, A, "granted"),
  attempt(100, A, { rate_wait_ms: 40, slot_wait_ms: 10, decided_by: LINE, elapsed_ms: 100 }),
  call(100, A, { rate_delay_ms: 50, decided_by: LINE }),
  // 2: the same again, from the cache.
  call(200, A, { from_cache: true, attempts: 0 }),
  // 3: stale from the cache; the hub refreshes it, and gets a 429 after 20 ms.
  call(300, A, { from_cache: true, stale: true, attempts: 0 }),
  acquire(301, A, "granted"),
  attempt(320, A, { ...throttled, status: 429, cause: "refresh", elapsed_ms: 20 }),
  call(320, A, { background: true, status: 429 }),
  // 4: a 503, then after the backoff a 200; the second attempt waits 30 ms. 60 ms each.
  acquire(400, A, "granted"),
  attempt(460, A, { ...throttled, status: 503, elapsed_ms: 60 }),
  acquire(500, A, "granted"),
  attempt(590, A, {
    attempt: 2,
    cause: "retry",
    retry_wait_ms: 40,
    rate_wait_ms: 30,
    decided_by: LINE,
    elapsed_ms: 60,
  }),
  call(590, A, { attempts: 2, rate_delay_ms: 30 }),
  // 5: a redirect from A to B, which answers 503. 10 ms and 200 ms.
  acquire(600, A, "granted"),
  attempt(610, A, { status: 302, elapsed_ms: 10 }),
  acquire(611, B, "granted"),
  attempt(811, B, { ...throttled, status: 503, attempt: 2, cause: "redirect", elapsed_ms: 200 }),
  call(811, A, { final_host: B, attempts: 2, status: 503 }),
  // 6: no server at B.
  acquire(900, B, "granted"),
  attempt(901, B, { connection: "none", status: undefined, outcome: "failed", error: "ECONNREFUSED" }),
  call(901, B, { status: undefined, error: "ECONNREFUSED", attempts: 0, breaker_recorded: "failure" }),
  // 7: refused by the limiter of A. 8: left the queue of A after 15 s.
  acquire(1000, A, "refused"),
  call(1000, A, { status: undefined, error: "DOCSTOKG_RATE_LIMITED", attempts: 0, decided_by: LINE }),
  acquire(16_000, A, "aborted"),
  call(16_000, A, {
    status: undefined,
    error: "UND_ERR_ABORTED",
    aborted: true,
    attempts: 0,
    breaker_recorded: undefined,
    rate_delay_ms: 15_000,
    unsent_wait_ms: 15_000,
  }),
  // 9: a HEAD without a unit, 50 ms. 10: confirmed by the server, 50 ms. 11: answered by 10's request.
  acquire(17_000, A, "granted", 0),
  at(17_000, "rate_head_skipped", { host: A, role: "metadata" }),
  attempt(17_050, A, { method: "HEAD", elapsed_ms: 50 }),
  call(17_050, A, { method: "HEAD" }),
  acquire(17_100, A, "granted"),
  attempt(17_150, A, { status: 304, cause: "revalidation", elapsed_ms: 50 }),
  call(17_150, A, { from_cache: true, revalidated: true }),
  call(17_150, A, { coalesced: true, attempts: 0 }),
  // 12: stale, because the request for it failed after 50 ms.
  acquire(17_200, A, "granted"),
  attempt(17_250, A, { status: 500, outcome: "failed", breaker_recorded: "failure", elapsed_ms: 50 }),
  call(17_250, A, { from_cache: true, stale: true }),
  // The circuit of A opens. 13 and 14 are refused, with 10 s and with 20 ms left. Its trial call succeeds.
  at(17_300, "breaker_state_change", { ...change, old: "closed", new: "open" }),
  ...[10_000, 20].map(remaining =>
    call(47_000, A, {
      status: undefined,
      error: "DOCSTOKG_BREAKER_OPEN",
      attempts: 0,
      breaker_recorded: undefined,
      breaker_open_remaining_ms: remaining,
      decided_by: "fail_max 5 (breakers.yaml:12)",
    }),
  ),
  at(47_300, "breaker_state_change", { ...change, old: "open", new: "half_open" }),
  at(47_400, "breaker_state_change", { ...change, old: "half_open", new: "closed" }),
  // B asks for a cooldown, and fails again after it. Another process opened a circuit: it is counted there.
  at(50_000, "breaker_cooldown_set", { host: B, until: START_MS + 60_000, reason: "retry-after" }),
  at(61_000, "breaker_failure", {
    host: B,
    role: "metadata",
    status: 500,
    state: "closed",
    fail_counter: 1,
    exc_type: undefined,
    msg: undefined,
    retry_after_s: undefined,
    cooldown_s: undefined,
  }),
  attempt(61_000, B, { status: 500, outcome: "failed", breaker_recorded: "failure", elapsed_ms: 10 }),
  at(62_000, "breaker_state_change", { ...change, old: "closed", new: "open", from_peer: true }),
  at(63_000, "aimd_adjust", { host: A, role: "metadata", old: 1, new: 0.8, reason: "429" }),
  at(64_000, "aimd_adjust", { host: A, role: "metadata", old: 0.8, new: 0.9, reason: "calm" }),
  // Shadow mode: a wait of 40 ms, one for a slot, a refusal by the limiter of B, and one by its breaker.
  ...[40, undefined].map(wait_ms =>
    at(64_500, "ratelimit.shadow", { key: B, role: "metadata", would: "wait", wait_ms, constraint: "1/SECOND of b" }),
  ),
  at(64_600, "ratelimit.shadow", {
    key: B,
    role: "metadata",
    would: "refuse",
    wait_ms: 900,
    constraint: "1/SECOND of b",
  }),
  at(64_700, "breaker_shadow", { host: B, role: "metadata", reason: "failures", remaining_ms: 1000 }),
  at(65_000, "telemetry_dropped", { sink: "jsonl", dropped: 7 }),
  at(3_600_000, "run_ended", {}),
];

/** Requests sent to A: 100 + 20 + 60 + 60 + 10 + 50 + 50 + 50 ms, eight of them: 50 ms on average. */
const expected: Readonly<Record<string, unknown>> = {
  durationMs: 3_600_000,
  events: 54,
  dropped: 7,
  calls: 14,
  "outcomes.*": { answered: 3, cached: 5, throttled: 1, failed: 1, refused: 3, aborted: 1 },
  refreshes: 1,
  "cache.hits": 2,
  "cache.stale": 1,
  "cache.afterRequest": 1,
  "cache.revalidated": 1,
  "cache.coalesced": 1,
  "cache.hitRate": 2 / 14,
  connectFailures: 1,
  "throttles.attempts": 10,
  "throttles.answers429": 1,
  "throttles.answers503": 2,
  "throttles.rate": 3 / 10,
  // 50, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0 of eleven attempts, and 15,000 without one.
  "delayMs.count": 12,
  "delayMs.p50": 0,
  "delayMs.p95": 15_000,
  "delayMs.max": 15_000,
  "delayMs.total": 15_080,
  "limiter.acquired": 9,
  "limiter.blocked": 1,
  "limiter.headSkipped": 1,
  "breaker.opens": 2,
  "breaker.opensPerHour": 2,
  "breaker.opensByReason.*": { failures: 1, "retry-after": 1, "rolling-window": 0, "slow-calls": 0, "cli-open": 0 },
  "breaker.denied": 2,
  "breaker.timeSavedMs": 50 + 20,
  "breaker.afterOpen.succeeded": 1,
  "breaker.afterOpen.failed": 1,
  "breaker.afterOpen.successRate": 0.5,
  "breaker.hosts[].opens": [1, 1],
  "breaker.hosts[].opensPerHour": [1, 1],
  "breaker.hosts[].denied": [2, 0],
  "breaker.hosts[].timeSavedMs": [50 + 20, 0],
  "shadow.waits": 2,
  "shadow.waitMs": 40,
  "shadow.limiterRefusals": 1,
  "shadow.breakerRefusals": 1,
  "shadow.hosts[].*": [{ host: B, waits: 2, waitMs: 40, limiterRefusals: 1, breakerRefusals: 1 }],
  // 50 and 30 ms of calls 1 and 4; call 7 was refused by the same line, and 13 and 14 by the circuit.
  "decisions[].waits": [2, 0],
  "decisions[].waitMs": [80, 0],
  "decisions[].refusals": [1, 2],
  "hosts[].calls": [12, 2],
  "hosts[].outcomes.*": [
    { answered: 3, cached: 5, throttled: 0, failed: 0, refused: 3, aborted: 1 },
    { answered: 0, cached: 0, throttled: 1, failed: 1, refused: 0, aborted: 0 },
  ],
  "hosts[].refreshes": [1, 0],
  "hosts[].attempts": [8, 2],
  "hosts[].connectFailures": [0, 1],
  "hosts[].answers429": [1, 0],
  "hosts[].answers503": [1, 1],
  "hosts[].delayMs.*": [
    { count: 9, p50: 0, p95: 15_000, max: 15_000, total: 15_080, isExact: true },
    { count: 3, p50: 0, p95: 0, max: 0, total: 0, isExact: true },
  ],
  "hosts[].slotWaitMs": [10, 0],
  "keys[].acquired": [7, 2],
  "keys[].blocked": [1, 0],
  "keys[].aborted": [1, 0],
  "keys[].headSkipped": [1, 0],
  "keys[].multiplier": [0.9, 1],
  "keys[].leastMultiplier": [0.8, 1],
  "topByDelay[].value": [15_080],
  "topByBlocks[].value": [1],
};

/** The value at a path such as `cache.hits`, `outcomes.*` or `hosts[].calls`. */
function valueAt(value: unknown, path: string): unknown {
  const [, first = "", rest] = /^([^.]+)(?:\.(.*))?$/s.exec(path) ?? [];
  if (first === "*" || first === "") return value;
  if (!first.endsWith("[]")) return valueAt(Reflect.get(value as object, first), rest ?? "");
  const items: readonly unknown[] = Reflect.get(value as object, first.slice(0, -2));
  return items.map(item => valueAt(item, rest ?? ""));
}

for (const [path, value] of Object.entries(expected)) {
  test(`the report's ${path} is as computed by hand from its definition`, async () => {
    assert.deepEqual(valueAt(await summarize(events, RUN), path), value);
  });
}

test("every number of the report has a definition and an example, and there are no others", async () => {
  assert.deepEqual(Object.keys(NUMBER_DEFINITIONS).sort(), Object.keys(expected).sort());
  const numbers = new Set<string>();
  const collect = (value: unknown, path: string) => {
    if (typeof value === "number") numbers.add(path);
    else if (Array.isArray(value)) for (const item of value) collect(item, `${path}[]`);
    else if (typeof value === "object" && value !== null)
      for (const [name, item] of Object.entries(value)) collect(item, path === "" ? name : `${path}.${name}`);
  };
  collect(await summarize(events, RUN), "");
  const isDefined = (path: string) =>
    Object.hasOwn(NUMBER_DEFINITIONS, path) || Object.hasOwn(NUMBER_DEFINITIONS, path.replace(/[^.]+$/, "*"));
  const instants = ["startedMs", "endedMs"];
  assert.deepEqual(
    [...numbers].filter(path => !isDefined(path) && !instants.includes(path)),
    [],
  );
});
