import assert from "node:assert/strict";
import { test } from "node:test";
import { acquire, at, attempt, call, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import { summarize } from "./run-tally.ts";

const HOUR_MS = 3_600_000;

const change = { reset_timeout_s: 60, last_rate_delay_ms: undefined } as const;

test("delays: percentiles by nearest rank, per host and role, of all attempts and of waits that ended without an attempt", async () => {
  const events = [
    // 1 to 20 in random order, and a cache hit without a wait.
    ...[7, 3, 20, 1, 15, 9, 2, 18, 11, 5, 14, 8, 19, 4, 12, 10, 17, 6, 16, 13].map((delay, index) =>
      attempt(index, "a.example", { rate_wait_ms: delay - 1, slot_wait_ms: 1 }),
    ),
    ...Array.from({ length: 20 }, (_, index) => call(index, "a.example")),
    call(21, "a.example", { from_cache: true, attempts: 0 }),
    attempt(22, "a.example", { role: "artifact", breaker_wait_ms: 300, jitter_wait_ms: 100 }),
    call(22, "a.example", { role: "artifact", rate_delay_ms: 400 }),
    attempt(23, "b.example"),
    // It waited for 50 ms and was refused: a wait without an attempt.
    call(23, "b.example", { error: "DOCSTOKG_RATE_LIMITED", status: undefined, attempts: 0, unsent_wait_ms: 50 }),
  ];
  const { hosts, delayMs, topByDelay } = await summarize(events, RUN);
  assert.deepEqual(
    hosts.map(({ host, role, calls, delayMs: { count, p50, p95, max, total }, slotWaitMs }) => [
      host,
      role,
      calls,
      count,
      p50,
      p95,
      max,
      total,
      slotWaitMs,
    ]),
    [
      ["a.example", "metadata", 21, 20, 10, 19, 20, 210, 20],
      ["a.example", "artifact", 1, 1, 400, 400, 400, 400, 0],
      ["b.example", "metadata", 1, 2, 0, 50, 50, 50, 0],
    ],
  );
  assert.deepEqual([delayMs.count, delayMs.p50, delayMs.p95, delayMs.isExact], [23, 11, 50, true]);
  assert.deepEqual(topByDelay, [
    { host: "a.example", value: 610 },
    { host: "b.example", value: 50 },
  ]);
});

test("acquired and blocked requests, skipped HEADs, AIMD multipliers, and the keys with the most refusals", async () => {
  const events = [
    acquire(0, "a.example", "granted"),
    acquire(1, "a.example", "granted"),
    acquire(2, "a.example", "refused"),
    acquire(3, "a.example", "aborted"),
    acquire(4, "a.example", "granted", 0),
    at(4, "rate_head_skipped", { host: "a.example", role: "metadata" }),
    acquire(5, "service arxiv", "refused"),
    acquire(6, "service arxiv", "refused"),
    at(7, "aimd_adjust", { host: "a.example", role: "metadata", old: 1, new: 0.8, reason: "429" }),
    at(8, "aimd_adjust", { host: "a.example", role: "metadata", old: 0.8, new: 0.64, reason: "429" }),
    at(9, "aimd_adjust", { host: "a.example", role: "metadata", old: 0.64, new: 0.69, reason: "calm" }),
  ];
  const { keys, limiter, topByBlocks } = await summarize(events, RUN);
  const own = { role: "metadata", aborted: 0, headSkipped: 0, multiplier: 1, leastMultiplier: 1 };
  assert.deepEqual(keys, [
    {
      ...own,
      key: "a.example",
      acquired: 2,
      blocked: 1,
      aborted: 1,
      headSkipped: 1,
      multiplier: 0.69,
      leastMultiplier: 0.64,
    },
    { ...own, key: "service arxiv", acquired: 0, blocked: 2 },
  ]);
  assert.deepEqual(limiter, { acquired: 2, blocked: 3, headSkipped: 1 });
  assert.deepEqual(topByBlocks, [
    { host: "service arxiv", value: 2 },
    { host: "a.example", value: 1 },
  ]);
});

test("429 and 503 as a share of the requests sent, each response counted once, at the host that sent it", async () => {
  const throttled = (status: number) => ({ status, outcome: "throttled", breaker_recorded: "failure" }) as const;
  const events = [
    // Three attempts: 429, 503, 200.
    attempt(0, "a.example", throttled(429)),
    attempt(1, "a.example", { ...throttled(503), attempt: 2, cause: "retry" }),
    attempt(2, "a.example", { attempt: 3, cause: "retry" }),
    call(2, "a.example", { attempts: 3 }),
    // A 503 that the policy makes neutral.
    attempt(3, "a.example", { ...throttled(503), breaker_recorded: "neutral" }),
    call(3, "a.example", { status: 503, breaker_recorded: "neutral" }),
    // A background refresh that got a 429: no call, but a request.
    attempt(4, "a.example", { ...throttled(429), cause: "refresh" }),
    call(4, "a.example", { status: 429, background: true }),
    // A redirect from a.example to b.example, which answers 503.
    attempt(5, "a.example", { status: 302 }),
    attempt(6, "b.example", { ...throttled(503), attempt: 2, cause: "redirect" }),
    call(6, "a.example", { status: 503, final_host: "b.example", attempts: 2 }),
    // No connection: nothing was sent.
    attempt(7, "a.example", { connection: "none", status: undefined, outcome: "failed", error: "ECONNREFUSED" }),
    call(7, "a.example", { status: undefined, error: "ECONNREFUSED", attempts: 0, breaker_recorded: "failure" }),
  ];
  const { throttles, outcomes, hosts, connectFailures, refreshes, calls } = await summarize(events, RUN);
  assert.deepEqual(throttles, { attempts: 7, answers429: 2, answers503: 3, rate: 5 / 7 });
  assert.deepEqual(outcomes, { answered: 1, cached: 0, throttled: 2, failed: 1, refused: 0, aborted: 0 });
  assert.deepEqual([calls, refreshes, connectFailures], [4, 1, 1]);
  assert.deepEqual(
    hosts.map(row => [row.host, row.calls, row.attempts, row.answers429, row.answers503, row.outcomes.throttled]),
    [
      ["a.example", 3, 6, 2, 2, 1],
      ["b.example", 1, 1, 0, 1, 1],
    ],
  );
});

test("cache hit rate: calls served without a request, as a share of all calls", async () => {
  const events = [
    call(0, "a.example"),
    call(1, "a.example", { from_cache: true, attempts: 0 }),
    call(2, "a.example", { from_cache: true, stale: true, attempts: 0 }),
    call(3, "a.example", { from_cache: true, revalidated: true }),
    call(4, "a.example", { coalesced: true, attempts: 0 }),
    // Stale, because the request for it got a 503: no hit.
    call(5, "a.example", { from_cache: true, stale: true, breaker_recorded: "failure" }),
    // Stale, because the circuit is open: nothing was sent.
    call(6, "a.example", { from_cache: true, stale: true, attempts: 0 }),
    call(7, "a.example", { from_cache: true, revalidated: true, background: true }),
  ];
  const { cache, outcomes } = await summarize(events, RUN);
  assert.deepEqual(cache, { hits: 3, stale: 2, afterRequest: 1, revalidated: 1, coalesced: 1, hitRate: 3 / 7 });
  assert.equal(outcomes.cached, 6);
});

test("openings per hour and by reason: extended cooldowns and openings of other processes are not counted", async () => {
  const cooled = (
    ms: number,
    untilMs: number,
    reason: "retry-after" | "rolling-window" | "slow-calls" | "cli-open:x",
  ) => at(ms, "breaker_cooldown_set", { host: "a.example", until: START_MS + untilMs, reason });
  const events = [
    at(0, "run_started", { program: "test", version: "1" }),
    at(1, "breaker_state_change", { ...change, host: "a.example", role: "metadata", old: "closed", new: "open" }),
    at(2, "breaker_state_change", { ...change, resolver: "crossref", old: "closed", new: "open" }),
    cooled(10, 1000, "retry-after"),
    cooled(500, 2000, "retry-after"),
    cooled(2000, 3000, "rolling-window"),
    at(2500, "breaker_cooldown_ended", { host: "a.example", by: "operator" }),
    cooled(2600, 9000, "cli-open:x"),
    cooled(9500, 9900, "slow-calls"),
    at(9000, "breaker_state_change", { ...change, host: "c.example", old: "closed", new: "open", from_peer: true }),
    at(9001, "breaker_cooldown_set", {
      host: "c.example",
      until: START_MS + 9999,
      reason: "retry-after",
      from_peer: true,
    }),
    at(2 * HOUR_MS, "run_ended", {}),
  ];
  const { breaker, durationMs, hasEnded, program } = await summarize(events, RUN);
  assert.deepEqual([durationMs, hasEnded, program], [2 * HOUR_MS, true, "test"]);
  assert.equal(breaker.opens, 6);
  assert.equal(breaker.opensPerHour, 3);
  assert.deepEqual(breaker.opensByReason, {
    failures: 2,
    "retry-after": 1,
    "rolling-window": 1,
    "slow-calls": 1,
    "cli-open": 1,
  });
});

test("time saved: the mean duration of an attempt for each refused call, or the remaining open time", async () => {
  const refused = (ms: number, host: string, remainingMs: number) =>
    call(ms, host, {
      status: undefined,
      error: "DOCSTOKG_BREAKER_OPEN",
      attempts: 0,
      breaker_recorded: undefined,
      breaker_open_remaining_ms: remainingMs,
    });
  const events = [
    // Two attempts of 500 and 700 ms, and two of 600 ms: 600 on average. Waits before and between them do not count.
    attempt(0, "a.example", { elapsed_ms: 500, rate_wait_ms: 300 }),
    attempt(1, "a.example", { elapsed_ms: 700, retry_wait_ms: 500, attempt: 2, cause: "retry" }),
    call(1, "a.example", { elapsed_ms: 2000, rate_delay_ms: 300, attempts: 2 }),
    attempt(2, "a.example", { elapsed_ms: 600 }),
    call(2, "a.example", { elapsed_ms: 600 }),
    attempt(3, "a.example", { elapsed_ms: 600 }),
    call(3, "a.example", { elapsed_ms: 600 }),
    // A call that gave up after 15 s in the queue was never sent, and no connection is no duration of the host.
    call(3, "a.example", { elapsed_ms: 15_000, unsent_wait_ms: 15_000, status: undefined, aborted: true, attempts: 0 }),
    attempt(3, "a.example", { elapsed_ms: 9000, connection: "none", status: undefined, outcome: "failed" }),
    refused(4, "a.example", 10_000),
    refused(5, "a.example", 601),
    refused(6, "a.example", 250),
    // No attempt at this host: the mean over all hosts is used.
    refused(7, "never-reached.example", 10_000),
    // breaker_before_call events do not count when there are calls.
    at(8, "breaker_before_call", {
      host: "a.example",
      role: "metadata",
      resolver: undefined,
      allowed: false,
      state: "open",
      reason: "failures",
      remaining_ms: 10_000,
    }),
    acquire(9, "a.example", "refused"),
  ];
  const { breaker, limiter, outcomes } = await summarize(events, RUN);
  assert.equal(breaker.timeSavedMs, 600 + 600 + 250 + 600);
  assert.deepEqual([breaker.denied, limiter.blocked, outcomes.refused], [4, 1, 4]);
});

test("without a hub the refusals in breaker_before_call are counted", async () => {
  const ask = { host: "a.example", role: "metadata", resolver: undefined, state: "open", reason: "failures" } as const;
  const events = [1, 2, 3].map(ms => at(ms, "breaker_before_call", { ...ask, allowed: false, remaining_ms: 100 }));
  const { breaker } = await summarize(events, RUN);
  assert.deepEqual([breaker.denied, breaker.timeSavedMs], [3, 0]);
});

test("success after an opening: trial calls of circuits, and the first call after a cooldown", async () => {
  const of = { ...change, host: "a.example", role: "metadata" } as const;
  const result = { host: "b.example", role: "metadata", status: 200, state: "closed", fail_counter: 0 } as const;
  const none = { exc_type: undefined, msg: undefined, retry_after_s: undefined, cooldown_s: undefined } as const;
  const failed = { ...result, ...none, fail_counter: 1 } as const;
  const events = [
    at(0, "breaker_state_change", { ...of, old: "closed", new: "open" }),
    at(1, "breaker_state_change", { ...of, old: "open", new: "half_open" }),
    at(2, "breaker_state_change", { ...of, old: "half_open", new: "open" }),
    at(3, "breaker_state_change", { ...of, old: "open", new: "half_open" }),
    at(4, "breaker_state_change", { ...of, old: "half_open", new: "closed" }),
    at(5, "breaker_cooldown_set", { host: "b.example", until: START_MS + 1000, reason: "retry-after" }),
    // Was in flight already.
    at(6, "breaker_failure", { ...failed, status: 503 }),
    at(1000, "breaker_success", result),
    at(1001, "breaker_failure", { ...failed, status: 503 }),
    at(1002, "breaker_cooldown_set", { host: "b.example", until: START_MS + 2000, reason: "retry-after" }),
    at(2500, "breaker_success", result),
  ];
  const { breaker } = await summarize(events, RUN);
  assert.deepEqual(breaker.afterOpen, { succeeded: 3, failed: 1, successRate: 0.75 });
});

test("a request that was sent before a cooldown is not the first call after it, however late it ends", async () => {
  const host = "b.example";
  const result = { role: "metadata", status: 200, state: "closed", fail_counter: 0 } as const;
  const ended = (ms: number, elapsed_ms: number, more: object = {}) => [
    attempt(ms, host, { elapsed_ms, breaker_recorded: "success", ...more }),
    at(ms, "breaker_success", { host, ...result }),
  ];
  const cooldown = (owner: string, ms: number, untilMs: number) =>
    at(ms, "breaker_cooldown_set", { host: owner, until: START_MS + untilMs, reason: "retry-after" });
  const { breaker } = await summarize([cooldown(host, 1000, 2000), ...ended(2500, 2000)], RUN);
  assert.equal(breaker.afterOpen.succeeded, 0);
  const after = await summarize([cooldown(host, 1000, 2000), ...ended(2500, 2000), ...ended(2600, 50)], RUN);
  assert.equal(after.breaker.afterOpen.succeeded, 1);
  const hash = "0123456789abcdef";
  const owners = ["service s", `${host}#${hash}`].map((owner, i) => cooldown(owner, 1000 + i, 2000));
  const earlier = { key: "service s", cooldown_key: undefined, partition: hash };
  const others = await summarize([...owners, ...ended(2600, 50, earlier)], RUN);
  assert.equal(others.breaker.afterOpen.succeeded, 1, "also of its service and its partition, as one call");
});

test("the first call after a cooldown is that of the owner of the cooldown, whatever limits the call uses", async () => {
  const succeeded = async (owner: string, fields: object) => {
    const events = [
      at(0, "breaker_cooldown_set", { host: owner, until: START_MS + 1000, reason: "retry-after" }),
      attempt(1500, "a.example", { elapsed_ms: 100, breaker_recorded: "success", ...fields }),
    ];
    return (await summarize(events, RUN)).breaker.afterOpen.succeeded;
  };
  assert.equal(await succeeded("service s", { key: "service s with API_KEY", cooldown_key: "service s" }), 1);
  assert.equal(await succeeded("service s", { key: "a.example", cooldown_key: "service s#0123456789abcdef" }), 1);
  assert.equal(await succeeded("resolver mirror", { resolver: "mirror" }), 1);
  assert.equal(await succeeded("service other", { key: "service other", cooldown_key: "service s" }), 0);
});

test("a run without events has an empty summary, and dropped events are counted", async () => {
  const nothing = await summarize([], RUN);
  assert.deepEqual(
    [nothing.calls, nothing.durationMs, nothing.breaker.opensPerHour, nothing.cache.hitRate],
    [0, 0, 0, 0],
  );
  const lossy = await summarize([at(0, "telemetry_dropped", { sink: "jsonl", dropped: 3 })], RUN);
  assert.equal(lossy.dropped, 3);
});

test("very many hosts make 20,000 rows and one for the rest, and no call is lost", async () => {
  function* crawl() {
    for (let i = 0; i < 60_000; i += 1) yield call(i, `host-${i}.example`);
  }
  const { hosts, calls } = await summarize(crawl(), RUN);
  assert.equal(calls, 60_000);
  assert.equal(hosts.length, 20_001);
  assert.deepEqual([hosts[0]?.host, hosts[0]?.calls], ["(other hosts)", 40_000]);
});
