import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { test } from "node:test";
import {
  heldServer,
  hubFor,
  ONE_A_SECOND_QUEUED,
  only,
  recordEvents,
  serve,
  settles,
  type TestHubOptions,
  until,
} from "../../test/http/kit.ts";
import { START_MS } from "../../test/telemetry/kit.ts";
import { textHash } from "../core/text/text-hash.ts";
import { BreakerOpenError } from "../errors.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import { summarize } from "../telemetry/summary/run-tally.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { HubEvent } from "./hub-options.ts";

const PATIENT = { metadata: { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 100_000 } };

/** The report on the events of a hub. */
function reportOn(events: readonly HubEvent[]) {
  const stamped = events.map(event => ({ ts: START_MS, run_id: "r", config_hash: "", ...event }));
  return summarize(stamped as unknown as TelemetryEvent[], "r");
}

test("each sending is one http_attempt: number, cause, waits, connection, status, outcome, bytes and times", async t => {
  const time = new FakeTime();
  const { held, server, hub, events, arrived } = await heldServer(t, {
    time,
    cache: false,
    limits: ONE_A_SECOND_QUEUED,
    retry: { baseMs: 100 },
    random: () => 0.5,
  });
  const answer = hub.request(server.origin, { method: "PUT", body: "12345", idempotent: true, resolver: "mirror" });
  await arrived(1);
  await time.advance(30);
  held[0]?.writeHead(503).end("no");
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(1000);
  await arrived(2);
  await time.advance(20);
  held[1]?.end("done");
  assert.equal(await (await answer).body.text(), "done");
  const [first, second] = only(events, "http_attempt");
  const [call] = only(events, "http_request");
  assert.equal(only(events, "http_attempt").length, 2);
  assert.deepEqual(first, {
    event_type: "http_attempt",
    call_id: call?.call_id,
    attempt: 1,
    cause: "call",
    host: "127.0.0.1",
    key: "127.0.0.1",
    cooldown_key: "127.0.0.1",
    role: "metadata",
    resolver: "mirror",
    partition: undefined,
    method: "PUT",
    rate_wait_ms: 0,
    slot_wait_ms: 0,
    breaker_wait_ms: 0,
    jitter_wait_ms: 0,
    retry_wait_ms: 0,
    connection: "new",
    status: 503,
    error: undefined,
    outcome: "throttled",
    breaker_recorded: "failure",
    retry_after_s: undefined,
    request_bytes: 5,
    response_bytes: 2,
    connect_ms: 0,
    first_byte_ms: 30,
    elapsed_ms: 30,
  });
  const backoffMs = second?.retry_wait_ms ?? 0;
  assert.ok(backoffMs > 0);
  assert.deepEqual(
    { ...second },
    {
      ...(first as object),
      attempt: 2,
      cause: "retry",
      // One request a second, counted from the response over a new connection: the rest is the wait for the rate.
      rate_wait_ms: 1000 - backoffMs,
      decided_by: "1/SECOND (policy.ratelimits)",
      retry_wait_ms: backoffMs,
      connection: "reused",
      status: 200,
      outcome: "answered",
      breaker_recorded: "success",
      response_bytes: 4,
      first_byte_ms: 20,
      elapsed_ms: 20,
    },
  );
  assert.deepEqual([call?.attempts, call?.rate_delay_ms, call?.unsent_wait_ms], [2, 1000 - backoffMs, 0]);
});

test("a redirect that the hub follows is an attempt at its own host, which the report blames for its answers", async t => {
  const failing = await serve(t, (_, response) => response.writeHead(503).end());
  const first = await serve(t, (_, response) => response.writeHead(302, { location: failing.origin }).end());
  const hub = await hubFor(t, { cache: false, retry: false, network: { connectTo: [] } });
  const events = recordEvents(hub);
  const called = first.origin.replace("127.0.0.1", "localhost");
  for (let i = 0; i < 3; i += 1) await (await hub.request(called, { maxRedirections: 2 })).body.text();
  assert.deepEqual(
    only(events, "http_attempt").map(({ host, cause, status }) => [host, cause, status]),
    Array.from({ length: 3 }, () => [
      ["localhost", "call", 302],
      ["127.0.0.1", "redirect", 503],
    ]).flat(),
  );
  assert.deepEqual(
    only(events, "http_request").map(({ host, final_host, attempts }) => [host, final_host, attempts]),
    Array.from({ length: 3 }, () => ["localhost", "127.0.0.1", 2]),
  );
  const { hosts } = await reportOn(events);
  assert.deepEqual(
    hosts.map(({ host, attempts, answers503, outcomes }) => [host, attempts, answers503, outcomes.throttled]),
    [
      ["127.0.0.1", 3, 3, 3],
      ["localhost", 3, 0, 0],
    ],
  );
});

test("waits for a circuit are told apart; one that was given up does not count as a duration of the host", async t => {
  const time = new FakeTime();
  const { held, server, hub, events, arrived } = await heldServer(t, {
    time,
    cache: false,
    limits: { defaults: PATIENT },
    breakers: { defaults: { fail_max: 1, reset_timeout_s: 60 } },
  });
  const failed = hub.request(server.origin);
  await arrived(1);
  await time.advance(100);
  held[0]?.writeHead(500).end();
  await (await failed).body.text();
  const patient = hub.request(server.origin, { maxWaitMs: 70_000 });
  await until(() => hub.snapshot().waiting === 1);
  const controller = new AbortController();
  const aborted = hub.request(server.origin, { maxWaitMs: 70_000, signal: controller.signal });
  await until(() => hub.snapshot().waiting === 2);
  await time.advance(15_000);
  controller.abort();
  await assert.rejects(aborted);
  await assert.rejects(hub.request(server.origin, { maxWaitMs: 0 }), BreakerOpenError);
  const [, given] = only(events, "http_request");
  assert.deepEqual(
    [given?.attempts, given?.rate_delay_ms, given?.unsent_wait_ms, given?.aborted],
    [0, 15_000, 15_000, true],
  );
  const { breaker, delayMs } = await reportOn(events);
  assert.deepEqual([breaker.denied, breaker.timeSavedMs, delayMs.max], [1, 100, 15_000]);
  assert.equal(given?.breaker_wait_ms, 15_000);
  // The circuit admits the patient call as its trial call after 60 s.
  await time.advance(46_000);
  await arrived(2);
  held[1]?.end();
  await (await patient).body.text();
  const probe = only(events, "http_attempt").at(-1);
  assert.deepEqual([probe?.cause, probe?.rate_wait_ms, probe?.slot_wait_ms], ["probe", 0, 0]);
  const last = only(events, "http_request").at(-1);
  assert.equal(probe?.breaker_wait_ms, last?.breaker_wait_ms);
  assert.ok((probe?.breaker_wait_ms ?? 0) >= 60_000);
});

test("a background refresh is a call of the hub itself, and no rate counts more answers than requests", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) response.setHeader("cache-control", "max-age=1, stale-while-revalidate=600").end("old");
    else response.writeHead(429).end();
  });
  const hub = await hubFor(t, { time, retry: { baseMs: 0 } });
  const events = recordEvents(hub);
  const get = async () => (await hub.fetch(server.origin)).text();
  await get();
  await time.advance(2000);
  await get();
  await until(() => only(events, "http_request").length === 3);
  const calls = only(events, "http_request");
  const refresh = calls.find(({ background }) => background);
  assert.deepEqual(
    calls.map(({ background, stale, attempts }) => [background, stale, attempts]),
    [
      [false, false, 1],
      [false, true, 0],
      [true, false, 1],
    ],
  );
  assert.deepEqual(
    only(events, "http_attempt").map(({ call_id, cause, status }) => [call_id === refresh?.call_id, cause, status]),
    [
      [false, "call", 200],
      [true, "refresh", 429],
    ],
  );
  const { throttles, calls: told, refreshes, cache } = await reportOn(events);
  assert.deepEqual([told, refreshes, cache.hits], [2, 1, 1]);
  assert.deepEqual(throttles, { attempts: 2, answers429: 1, answers503: 0, rate: 0.5 });
});

test("a stale response that is served after a 503 is not a cache hit", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) response.setHeader("cache-control", "max-age=1, stale-if-error=600").end("old");
    else response.writeHead(503).end();
  });
  const hub = await hubFor(t, { time });
  const events = recordEvents(hub);
  const get = async () => (await hub.fetch(server.origin)).text();
  await get();
  await time.advance(2000);
  assert.equal(await get(), "old");
  const { cache } = await reportOn(events);
  assert.deepEqual([cache.hits, cache.stale, cache.afterRequest, cache.hitRate], [0, 0, 1, 0]);
  assert.deepEqual(
    only(events, "http_attempt").map(({ cause, status }) => [cause, status]),
    [
      ["call", 200],
      ["revalidation", 503],
    ],
  );
});

test("snapshot().calls counts each call once, with and without the cache", async t => {
  for (const cache of ["memory", false] as const) {
    const held: ServerResponse[] = [];
    const server = await serve(t, (_, response) => void held.push(response));
    const hub = await hubFor(t, { cache });
    const answers = Array.from({ length: 7 }, async (_, index) =>
      (await hub.fetch(`${server.origin}/${index}`)).text(),
    );
    await until(() => held.length === 7);
    assert.equal(hub.snapshot().calls, 7);
    for (const response of held) response.end();
    await Promise.all(answers);
    assert.equal(hub.snapshot().calls, 0);
  }
});

test("when the leader of a coalesced request leaves, its follower is coalesced and has what the breaker recorded", async t => {
  const { held, server, hub, events, arrived } = await heldServer(t);
  const leader = new AbortController();
  const left = hub.request(server.origin, { signal: leader.signal });
  await arrived(1);
  const followers = [hub.request(server.origin), hub.request(server.origin)];
  await until(() => hub.snapshot().calls === 3);
  leader.abort();
  await assert.rejects(left);
  held[0]?.setHeader("cache-control", "max-age=60").end("shared");
  for (const follower of followers) assert.equal(await (await settles(follower)).body.text(), "shared");
  const [first, ...others] = only(events, "http_request");
  assert.deepEqual([first?.attempts, first?.aborted, first?.coalesced], [1, true, false]);
  assert.deepEqual(others.map(({ attempts, coalesced, status }) => [attempts, coalesced, status]).sort(), [
    [0, true, 200],
    [0, true, 200],
  ]);
  assert.ok(others.some(({ breaker_recorded }) => breaker_recorded === "success"));
  const [sent] = only(events, "http_attempt");
  assert.deepEqual([sent?.call_id, sent?.breaker_recorded], [first?.call_id, "success"]);
  assert.equal(server.requests.length, 1);
});

test("a follower that takes over a queued request is credited with its sending, and each caller with its part of the wait", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.setHeader("cache-control", "max-age=60").end("ok"));
  const hub = await hubFor(t, { time, limits: ONE_A_SECOND_QUEUED });
  const events = recordEvents(hub);
  await (await hub.request(`${server.origin}/other`)).body.text();
  const leader = new AbortController();
  const left = hub.request(server.origin, { signal: leader.signal });
  await until(() => hub.snapshot().waiting === 1);
  const follower = hub.request(server.origin);
  await until(() => hub.snapshot().calls === 2);
  await time.advance(400);
  leader.abort();
  await assert.rejects(left);
  await time.advance(600);
  assert.equal(await (await settles(follower)).body.text(), "ok");
  assert.deepEqual(
    only(events, "http_request").map(({ attempts, coalesced, rate_delay_ms, unsent_wait_ms }) => [
      attempts,
      coalesced,
      rate_delay_ms,
      unsent_wait_ms,
    ]),
    [
      [1, false, 0, 0],
      [0, false, 400, 0],
      [1, false, 600, 0],
    ],
  );
  assert.deepEqual(
    only(events, "http_attempt").map(({ rate_wait_ms }) => rate_wait_ms),
    [0, 1000],
  );
});

test("a caller that does not read the whole body of a 200 has aborted its call, and the call has not failed", async t => {
  const server = await serve(t, (_, response) => void response.write("the beginning"));
  const hub = await hubFor(t, { cache: false });
  const events = recordEvents(hub);
  const { body } = await hub.fetch(server.origin);
  await body?.cancel();
  await until(() => only(events, "http_request").length === 1);
  const { outcomes } = await reportOn(events);
  assert.deepEqual([outcomes.aborted, outcomes.failed], [1, 0]);
  const [attempt] = only(events, "http_attempt");
  assert.deepEqual([attempt?.outcome, attempt?.breaker_recorded, attempt?.status], ["aborted", "success", 200]);
});

test("attempts that find no server are no requests sent", async t => {
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port } = closed.address() as { readonly port: number };
  closed.close();
  await once(closed, "close");
  const hub = await hubFor(t, { retry: { attempts: 3, baseMs: 0 } });
  const events = recordEvents(hub);
  await assert.rejects(hub.fetch(`http://127.0.0.1:${port}`));
  const [call] = only(events, "http_request");
  assert.deepEqual([call?.attempts, call?.breaker_recorded, call?.error], [0, "failure", "ECONNREFUSED"]);
  assert.deepEqual(
    only(events, "http_attempt").map(({ attempt, connection, outcome, error, connect_ms }) => [
      attempt,
      connection,
      outcome,
      error,
      connect_ms,
    ]),
    [1, 2, 3].map(attempt => [attempt, "none", "failed", "ECONNREFUSED", undefined]),
  );
  const { throttles, connectFailures } = await reportOn(events);
  assert.deepEqual([throttles.attempts, connectFailures], [0, 3]);
});

test("a trial call of a half-open circuit is a probe", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => response.writeHead(number === 1 ? 500 : 200).end());
  const hub = await hubFor(t, {
    time,
    cache: false,
    retry: false,
    random: () => 0.5,
    breakers: { defaults: { fail_max: 1, reset_timeout_s: 60, half_open: { jitter_ms: 100 } } },
  });
  const events = recordEvents(hub);
  await (await hub.request(server.origin)).body.text();
  await time.advance(61_000);
  const trial = hub.request(server.origin);
  await until(() => time.armedTimers > 0);
  await time.advance(100);
  await (await trial).body.text();
  const [, probe] = only(events, "http_attempt");
  assert.deepEqual([probe?.cause, probe?.breaker_recorded], ["probe", "success"]);
  assert.ok((probe?.jitter_wait_ms ?? 0) > 0);
  assert.equal(only(events, "http_request")[1]?.rate_delay_ms, probe?.jitter_wait_ms);
});

test("http_attempt names the owner of the cooldowns, so that the first call after a cooldown is found", async t => {
  const limits = { metadata: { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 0 } };
  const slower = { metadata: { rates: "900/SECOND" } };
  const members = ["127.0.0.1"];
  const cases: readonly [string, TestHubOptions, string][] = [
    ["service s", { limits: { services: { s: { members, ...limits } } } }, "a service"],
    [
      "service s",
      { limits: { services: { s: { members, ...limits } }, hosts: { "127.0.0.1": slower } } },
      "a member with limits of its own",
    ],
    [
      `service s#${textHash("tenant")}`,
      {
        limits: { services: { s: { members, ...limits } } },
        breakers: { defaults: { per: "partition" } },
        defaults: { partition: "tenant" },
      },
      "a partition of a service",
    ],
  ];
  for (const [owner, options, name] of cases) {
    const time = new FakeTime();
    const server = await serve(t, (_, response, number) => {
      if (number === 1) response.writeHead(429, { "retry-after": "2" }).end();
      else response.end("ok");
    });
    const hub = await hubFor(t, { time, retry: false, cache: false, random: () => 0, ...options });
    const stamped: TelemetryEvent[] = [];
    hub.listen(event => {
      stamped.push({ ts: time.wallMs(), run_id: "r", config_hash: "", ...event } as TelemetryEvent);
    });
    await (await hub.fetch(server.origin)).text();
    await time.advance(2500);
    await (await hub.fetch(server.origin)).text();
    const attempts = stamped.filter(event => event.event_type === "http_attempt");
    assert.deepEqual(new Set(attempts.map(event => event.cooldown_key)), new Set([owner]), name);
    assert.equal((await summarize(stamped, "r")).breaker.afterOpen.succeeded, 1, name);
  }
});
