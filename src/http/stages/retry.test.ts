import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { Readable } from "node:stream";
import { test } from "node:test";
import fc from "fast-check";
import {
  assertNothingLeft,
  heldServer,
  hubFor,
  ONE_A_SECOND,
  only,
  recordEvents,
  serve,
  settles,
  until,
} from "../../../test/http/kit.ts";
import { contextRecordingWire } from "../../../test/http/wires.ts";
import { BreakerOpenError, RateLimitExceeded } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { RetryBudget } from "./retry.ts";

/** The longest delay, so that times are known. */
const unlucky = () => 0.999_999_999;

test("a 429 with Retry-After: 1 and then a 200 take one second and two rate-limit units, and the caller gets the 200", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) response.writeHead(429, { "retry-after": "1" }).end("slow down");
    else response.end("ok");
  });
  const hub = await hubFor(t, {
    time,
    random: () => 0,
    limits: { defaults: { metadata: { rates: "10/SECOND", guard_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const answer = hub.fetch(`${server.origin}/x`);
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(999);
  assert.equal(server.requests.length, 1);
  await time.advance(1);
  assert.equal((await answer).status, 200);
  assert.equal(time.monotonicUs(), 1_000_000);
  const acquired = only(events, "ratelimit.acquire");
  assert.deepEqual(
    acquired.map(({ blocked_ms, outcome }) => ({ blocked_ms, outcome })),
    [
      { blocked_ms: 0, outcome: "granted" },
      { blocked_ms: 0, outcome: "granted" },
    ],
  );
});

test("delays grow with each failure, and the caller gets the last response unchanged", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => response.writeHead(500).end(`failure ${number}`));
  const hub = await hubFor(t, {
    time,
    random: unlucky,
    retry: { attempts: 3, baseMs: 100 },
    breakers: { advanced: { rolling_window: { enabled: false } } },
  });
  const events = recordEvents(hub);
  const answer = hub.fetch(server.origin);
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(100);
  await until(() => only(events, "http_retry").length === 2);
  await time.advance(200);
  const response = await answer;
  assert.equal(response.status, 500);
  assert.equal(await response.text(), "failure 3");
  assert.deepEqual(
    only(events, "http_retry").map(({ attempt, delay_ms, status }) => ({ attempt, delay_ms, status })),
    [
      { attempt: 1, delay_ms: 100, status: 500 },
      { attempt: 2, delay_ms: 200, status: 500 },
    ],
  );
});

test("a request is retried after a connection reset", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response, number) => {
    if (number === 1) request.socket.resetAndDestroy();
    else response.end("ok");
  });
  const hub = await hubFor(t, { time, random: unlucky });
  const events = recordEvents(hub);
  const answer = hub.fetch(server.origin);
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(500);
  assert.equal(await (await answer).text(), "ok");
});

test("with a Retry-After beyond the deadline the caller gets the 429 at once", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(429, { "retry-after": "121" }).end("later"));
  const hub = await hubFor(t, { time });
  const response = await hub.fetch(server.origin);
  assert.equal(response.status, 429);
  assert.equal(await response.text(), "later");
  assert.equal(server.requests.length, 1);
});

test("a retry waits for a cooldown as long as maxBreakerWaitMs allows, and the caller gets the 429 of a longer one", async t => {
  for (const [maxBreakerWaitMs, expected] of [
    [9999, 429],
    [10_000, 200],
  ] as const) {
    const time = new FakeTime();
    const server = await serve(t, (_, response, number) => {
      if (number === 1) response.writeHead(429, { "retry-after": "10" }).end();
      else response.end("ok");
    });
    const hub = await hubFor(t, { time, random: () => 0 });
    const events = recordEvents(hub);
    const answer = hub.request(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs });
    await until(() => server.requests.length === 1 && hub.snapshot().inFlight === 0);
    assert.equal(only(events, "http_retry").length, expected === 200 ? 1 : 0);
    await time.advance(10_000);
    assert.equal((await answer).statusCode, expected);
  }
});

test("a retry does not wait for a cooldown that is made longer than maxBreakerWaitMs allows", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, retry: {}, cache: false, random: () => 0 });
  const events = recordEvents(hub);
  const get = (path: string) => hub.request(`${server.origin}${path}`, { maxBreakerWaitMs: 15_000 });
  const first = get("/");
  const other = hub.request(`${server.origin}/other`, { method: "POST" });
  await arrived(2);
  const throttle = (path: string, seconds: string) =>
    held
      .find(({ req }) => req.url === path)
      ?.writeHead(429, { "retry-after": seconds })
      .end();
  throttle("/", "10");
  await until(() => only(events, "http_retry").length === 1);
  throttle("/other", "16");
  await (await other).body.text();
  await time.advance(10_000);
  assert.equal((await first).statusCode, 429);
  assert.equal(held.length, 2);
});

test("a retry of a call with maxBreakerWaitMs waits for circuits, less the time that it has waited for a cooldown", async t => {
  for (const [orderedS, expected] of [
    [6, 200],
    [7, 429],
  ] as const) {
    const time = new FakeTime();
    const server = await serve(t, (_, response, number) => {
      if (number === 1) response.writeHead(429, { "retry-after": "10" }).end();
      else response.end("ok");
    });
    // The order comes while the retry waits for its rate limit, and blocks it from the 11th second on.
    const hub = await hubFor(t, {
      time,
      random: () => 0,
      limits: { defaults: { metadata: { rates: "1/11SECOND", guard_ms: 0, max_delay_ms: 0 } } },
    });
    const events = recordEvents(hub);
    const answer = hub.request(server.origin, { maxBreakerWaitMs: 15_000 });
    await until(() => only(events, "http_retry").length === 1);
    await time.advance(10_000);
    await until(() => hub.snapshot().waiting === 1);
    hub.breakers.open("127.0.0.1", { seconds: orderedS });
    await time.advance(20_000);
    assert.equal((await settles(answer)).statusCode, expected);
  }
});

test("no attempt begins after the deadline, also if the attempt before it had more time left", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    cache: false,
    random: () => 0,
    retry: { deadlineMs: 10_000 },
    limits: { defaults: { metadata: { rates: "2/12SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const answer = hub.request(server.origin);
  for (const count of [1, 2]) {
    await arrived(count);
    if (count === 2) await time.advance(8000);
    held[count - 1]?.writeHead(500).end("down");
    await until(() => only(events, "http_retry").length === count);
    await time.advance(1);
  }
  assert.equal((await settles(answer)).statusCode, 500);
  assert.equal(held.length, 2);
  assertNothingLeft(hub, time);
});

test("a Retry-After above retry_after_cap_s is still obeyed completely", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) response.writeHead(503, { "retry-after": "2000" }).end();
    else response.end("ok");
  });
  const hub = await hubFor(t, { time, random: () => 0 });
  const events = recordEvents(hub);
  const answer = hub.fetch(server.origin, { deadlineMs: 3_000_000 });
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(1_999_999);
  assert.equal(server.requests.length, 1);
  await time.advance(1);
  assert.equal((await answer).status, 200);
});

test("refusals by the limiter or the breaker are never retried", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 100 } } },
  });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin)).text();
  await assert.rejects(hub.fetch(server.origin), RateLimitExceeded);
  await assert.rejects(hub.request(server.origin), RateLimitExceeded);
  assert.equal(server.requests.length, 1);

  const failing = await serve(t, (_, response) => response.writeHead(503).end());
  const cut = await hubFor(t, { time, retry: false, breakers: { defaults: { fail_max: 2 } } });
  for (let call = 0; call < 2; call += 1) await (await cut.fetch(failing.origin)).text();
  await assert.rejects(cut.request(failing.origin), BreakerOpenError);
  assert.equal(failing.requests.length, 2);
  assert.equal(only(events, "http_retry").length, 0);
  const { inFlight, waiting } = cut.snapshot();
  assert.deepEqual({ inFlight, waiting }, { inFlight: 0, waiting: 0 });
});

test("when its failures open the circuit, a call gets its last response and does not wait for the circuit", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(503).end("down"));
  const hub = await hubFor(t, { time, random: () => 0, breakers: { defaults: { fail_max: 2 } } });
  const events = recordEvents(hub);
  const answer = hub.fetch(server.origin);
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(1);
  const response = await answer;
  assert.equal(await response.text(), "down");
  assert.equal(server.requests.length, 2);
});

test("in an outage the attempts stay within 1.2 times the calls plus 3", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(500).end());
  const hub = await hubFor(t, {
    time,
    random: () => 0,
    breakers: { defaults: { fail_max: 1e6 }, advanced: { rolling_window: { enabled: false } } },
  });
  const calls = 50;
  for (let call = 0; call < calls; call += 1) {
    const answer = hub.fetch(server.origin);
    let isOver = false;
    answer.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await until(() => isOver || time.armedTimers > 0);
      await time.advance(1);
    }
    await (await answer).text();
  }
  assert.ok(server.requests.length <= 1.2 * calls + 3, `${server.requests.length} attempts`);
  assert.ok(server.requests.length >= 1.2 * calls, `${server.requests.length} attempts`);
});

test("a request that is not idempotent is sent once, unless its caller marks it idempotent", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => request.resume().on("end", () => response.writeHead(500).end()));
  const hub = await hubFor(t, { time, random: () => 0 });
  const events = recordEvents(hub);
  const post = await hub.request(server.origin, { method: "POST", body: "x" });
  await post.body.text();
  assert.equal(server.requests.length, 1);
  const marked = hub.request(server.origin, { method: "POST", body: "x", idempotent: true });
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(1);
  await until(() => only(events, "http_retry").length === 2);
  await time.advance(1);
  await until(() => only(events, "http_retry").length === 3);
  await time.advance(1);
  await (await marked).body.text();
  assert.equal(server.requests.length, 5);
});

test("a request with a stream body is sent once", async t => {
  const server = await serve(t, (request, response) => request.resume().on("end", () => response.writeHead(500).end()));
  const hub = await hubFor(t);
  const { statusCode } = await hub.request(server.origin, {
    method: "PUT",
    idempotent: true,
    body: Readable.from(["once"]),
  });
  assert.equal(statusCode, 500);
  assert.equal(server.requests.length, 1);
});

test("between two attempts no slot and no connection is held", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) response.writeHead(503).end("x".repeat(10_000));
    else response.end("ok");
  });
  const hub = await hubFor(t, {
    time,
    random: unlucky,
    limits: { defaults: { metadata: { rates: "1000/SECOND", max_concurrent: 1 } } },
  });
  const events = recordEvents(hub);
  const first = hub.fetch(`${server.origin}/first`);
  await until(() => only(events, "http_retry").length === 1 && hub.snapshot().inFlight === 0);
  // undici reuses a connection only in the next turn of the event loop.
  await new Promise(resolve => setImmediate(resolve));
  const second = await hub.fetch(`${server.origin}/second`);
  assert.equal(await second.text(), "ok");
  assert.equal(server.connections, 1);
  await time.advance(500);
  assert.equal(await (await first).text(), "ok");
});

test("an abort between two attempts ends the call and leaves no timer", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(503).end());
  const hub = await hubFor(t, { time, random: unlucky });
  const events = recordEvents(hub);
  const controller = new AbortController();
  const answer = hub.fetch(server.origin, { signal: controller.signal });
  await until(() => only(events, "http_retry").length === 1);
  controller.abort(new Error("enough"));
  await assert.rejects(answer, /enough/);
  assert.equal(time.armedTimers, 0);
  assert.equal(hub.snapshot().calls, 0);
  await time.advance(10_000);
  assert.equal(server.requests.length, 1);
});

test("a call that waits for its Retry-After gets its 429 when the circuit opens meanwhile", async t => {
  const time = new FakeTime();
  const failing: (() => unknown)[] = [];
  const server = await serve(t, (request, response) => {
    if (request.url === "/throttled") response.writeHead(429, { "retry-after": "1" }).end("slow down");
    else failing.push(() => response.writeHead(500).end());
  });
  const hub = await hubFor(t, {
    time,
    random: () => 0,
    retry: { attempts: 2 },
    breakers: { defaults: { fail_max: 2 }, advanced: { rolling_window: { enabled: false } } },
  });
  const events = recordEvents(hub);
  // Both are in flight before the first response.
  const others = [1, 2].map(n => hub.request(`${server.origin}/${n}`, { idempotent: false }));
  await until(() => failing.length === 2);
  const throttled = hub.request(`${server.origin}/throttled`);
  await until(() => only(events, "http_retry").length === 1);
  for (const fail of failing) fail();
  await Promise.all(others);
  assert.equal(hub.snapshot().hosts[0]?.roles[0]?.state, "open");
  await time.advance(1000);
  const { statusCode, body } = await throttled;
  assert.equal(statusCode, 429);
  assert.equal(await body.text(), "slow down");
  assert.equal(server.requests.length, 3);
});

test("429 responses to requests that were in flight together are one failure", async t => {
  const server = await serve(t, (_, response) => response.writeHead(429, { "retry-after": "600" }).end());
  const hub = await hubFor(t, { retry: false, cache: false, breakers: { defaults: { fail_max: 3 } } });
  await Promise.all(Array.from({ length: 8 }, () => hub.request(server.origin)));
  const [host] = hub.snapshot().hosts;
  assert.equal(host?.reason, "retry-after");
  assert.equal(host?.windowFailures, 1);
  assert.deepEqual(
    host?.roles.map(({ state, failures }) => ({ state, failures })),
    [{ state: "closed", failures: 1 }],
  );
});

test("a burst of 429 responses without Retry-After holds the key for its window and opens no circuit", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => response.writeHead(number <= 3 ? 429 : 200).end());
  const limits = { defaults: { metadata: { rates: "3/SECOND", guard_ms: 0 } } };
  const breakers = { defaults: { fail_max: 3 } };
  const hub = await hubFor(t, { time, cache: false, limits, breakers, retry: { baseMs: 0 }, random: () => 0 });
  const events = recordEvents(hub);
  const burst = Promise.all(Array.from({ length: 3 }, () => hub.request(server.origin, { maxWaitMs: 60_000 })));
  await until(() => only(events, "http_retry").length === 3);
  await time.advance(999);
  assert.equal(server.requests.length, 3);
  // The hold of one window ends. The second 429 has switched the key to even spacing: (3 - 2) requests a second.
  for (const [count, ms] of [
    [4, 26],
    [5, 1000],
    [6, 1000],
  ] as const) {
    await time.advance(ms);
    await until(() => server.requests.length === count && hub.snapshot().inFlight === 0);
  }
  const statuses = (await burst).map(({ statusCode }) => statusCode);
  assert.deepEqual(statuses, [200, 200, 200]);
  assert.equal(server.requests.length, 6);
  assert.deepEqual(only(events, "breaker_state_change"), []);
});

test("a retry is dispatched in the asynchronous context of its caller, not in that of the request that opened the connection", async t => {
  const server = await serve(t, (_, response, number) => response.writeHead(number === 2 ? 503 : 200).end());
  const context = new AsyncLocalStorage<string>();
  const { wire, seen } = contextRecordingWire(t, context);
  const hub = await hubFor(t, { cache: false, dispatcher: wire, retry: { baseMs: 1 } });
  for (const name of ["who connected", "mine"]) {
    await context.run(name, async () => (await hub.request(server.origin)).body.text());
  }
  assert.deepEqual(seen, ["who connected", "mine", "mine"]);
  assert.equal(server.connections, 1);
});

test("a retry waits for the longest Retry-After that the host has sent to any request", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, retry: {}, cache: false, random: () => 0 });
  const events = recordEvents(hub);
  const short = hub.request(`${server.origin}/short`, { maxWaitMs: 0 });
  const long = hub.request(`${server.origin}/long`, { method: "POST" });
  await arrived(2);
  const answer = (path: string, seconds: string) =>
    held
      .find(({ req }) => req.url === path)
      ?.writeHead(429, { "retry-after": seconds })
      .end();
  answer("/long", "20");
  await (await long).body.text();
  answer("/short", "1");
  await until(() => only(events, "http_retry").length === 1);
  assert.deepEqual(
    only(events, "http_retry").map(({ delay_ms }) => delay_ms),
    [20_000],
  );
  await time.advance(20_000);
  await arrived(3);
  held[2]?.end();
  assert.equal((await short).statusCode, 200);
});

test("a retry that the hub refuses is not retried because of the failure of the attempt before", async t => {
  const time = new FakeTime();
  // Its body breaks off, so there is no complete response to return.
  const server = await serve(t, (_, response) => {
    response.writeHead(503).write("we are sor", () => response.destroy());
  });
  const hub = await hubFor(t, { time, random: () => 0, limits: ONE_A_SECOND });
  const events = recordEvents(hub);
  const refused = assert.rejects(hub.request(server.origin, { maxWaitMs: 0 }), RateLimitExceeded);
  await until(() => only(events, "http_retry").length === 1 && hub.snapshot().inFlight === 0);
  await time.advance(1);
  await refused;
  assert.equal(only(events, "http_retry").length, 1);
  assert.equal(time.armedTimers, 0);
});

test("a host that was never called has three retries, then one for every five calls", () => {
  const budget = new RetryBudget();
  const spent = [1, 2, 3, 4].map(() => budget.spend("a.example"));
  assert.deepEqual(spent, [true, true, true, false]);
  for (let calls = 0; calls < 4; calls += 1) budget.earn("a.example");
  assert.equal(budget.spend("a.example"), false);
  budget.earn("a.example");
  assert.equal(budget.spend("a.example"), true);
});

test("each host has its own retry budget", () => {
  const budget = new RetryBudget();
  while (budget.spend("a.example"));
  assert.equal(budget.spend("b.example"), true);
});

test("in any sequence of calls and failures the attempts stay within 1.2 times the calls plus 3", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300 }), wantsRetry => {
      const budget = new RetryBudget();
      // The sum at each step; a period may begin at any of them.
      const steps = wantsRetry.flatMap(wants => {
        budget.earn("a.example");
        return ["call", ...(wants && budget.spend("a.example") ? ["retry"] : [])];
      });
      for (let from = 0; from < steps.length; from += 1) {
        let calls = 0;
        let attempts = 0;
        for (const step of steps.slice(from)) {
          attempts += 1;
          if (step === "call") calls += 1;
          assert.ok(attempts <= 1.2 * calls + 3 + 1e-6);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("a call that is aborted by a listener of its http_retry event sends nothing more", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(500).end());
  const hub = await hubFor(t, { time, random: () => 0, retry: { attempts: 3, baseMs: 100 } });
  const controller = new AbortController();
  hub.listen(event => {
    if (event.event_type === "http_retry") controller.abort();
  });
  await assert.rejects(hub.request(server.origin, { signal: controller.signal }), { name: "AbortError" });
  await until(() => hub.snapshot().inFlight === 0);
  assertNothingLeft(hub, time);
  assert.equal(server.requests.length, 1);
});
