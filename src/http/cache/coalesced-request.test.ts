import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { dispatchTo, RecordingHandler } from "../../../test/http/handlers.ts";
import {
  assertNothingLeft,
  CHUNK,
  heldServer,
  hubFor,
  ONE_A_MINUTE,
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
import type { Hub } from "../hub.ts";
import { CallerIdentity } from "../stages/caller-identity.ts";

test("identical requests in flight are one request and use one rate-limit unit", async t => {
  const { held, server, get, arrived, events, hub } = await heldServer(t);
  const answers = Array.from({ length: 20 }, () => get());
  await arrived(1);
  await until(() => hub.snapshot().calls >= 20);
  held[0]?.setHeader("cache-control", "max-age=60").end("once");
  assert.deepEqual(await Promise.all(answers), Array(20).fill("once"));
  assert.equal(server.requests.length, 1);
  assert.equal(only(events, "ratelimit.acquire").length, 1);
  assert.equal(only(events, "breaker_success").length, 1);
  assert.equal(only(events, "http_request").filter(({ coalesced }) => coalesced).length, 19);
});

test("requests with different headers are not coalesced", async t => {
  const { held, get, arrived } = await heldServer(t);
  const answers = [get({ headers: { accept: "a/b" } }), get({ headers: { accept: "c/d" } })];
  await arrived(2);
  for (const [number, response] of held.entries()) response.end(`${number}`);
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(["0", "1"]));
});

test("an abort of the leader does not abort the followers", async t => {
  const { held, get, arrived, server } = await heldServer(t);
  const controller = new AbortController();
  const first = get({ signal: controller.signal });
  await arrived(1);
  const others = [get(), get()];
  await new Promise(resolve => setImmediate(resolve));
  controller.abort();
  await assert.rejects(first, { name: "AbortError" });
  held[0]?.setHeader("cache-control", "max-age=60").end("shared");
  assert.deepEqual(await Promise.all(others), ["shared", "shared"]);
  assert.equal(server.requests.length, 1);
});

test("the request is aborted when all its callers have aborted", async t => {
  const { held, get, arrived, hub } = await heldServer(t);
  const controller = new AbortController();
  const answers = [get({ signal: controller.signal }), get({ signal: controller.signal })];
  await arrived(1);
  const closed = new Promise(resolve => held[0]?.on("close", resolve));
  controller.abort();
  for (const answer of answers) await assert.rejects(answer, { name: "AbortError" });
  await closed;
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(hub.snapshot().calls, 0);
});

test("a response that must not be stored is for the leader alone, and the followers are sent at once", async t => {
  const { held, get, arrived } = await heldServer(t);
  const answers = [get(), get(), get()];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  held[0]?.setHeader("cache-control", "no-store").end("0");
  await arrived(3);
  held[1]?.setHeader("cache-control", "no-store").end("1");
  held[2]?.setHeader("cache-control", "no-store").end("2");
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(["0", "1", "2"]));
  // The key is now known to be unshareable, so requests do not wait for each other.
  const more = [get(), get()];
  await arrived(5);
  held[3]?.end("3");
  held[4]?.end("4");
  await Promise.all(more);
});

test("a failed response is shared, so a failing host gets one request", async t => {
  const { held, get, arrived, server } = await heldServer(t);
  const answers = [get(), get(), get()];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  held[0]?.writeHead(500).end("down");
  assert.deepEqual(await Promise.all(answers), ["down", "down", "down"]);
  assert.equal(server.requests.length, 1);
});

test("a broken connection fails all callers that waited for it", async t => {
  const { held, get, arrived, server } = await heldServer(t);
  const answers = [get(), get()];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  held[0]?.socket?.resetAndDestroy();
  for (const answer of answers) await assert.rejects(answer);
  assert.equal(server.requests.length, 1);
});

test("a refusal of the leader is not shared: a follower that may wait longer is sent again", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const other = hub.fetch(`${server.origin}/other`);
  await arrived(1);
  held[0]?.end();
  await other;
  const impatient = hub.request(server.origin);
  const patient = hub.request(server.origin, { maxWaitMs: 5000 });
  await assert.rejects(impatient, RateLimitExceeded);
  await time.advance(1000);
  await arrived(2);
  held[1]?.end("patient");
  assert.equal(await (await patient).body.text(), "patient");
});

test("identical calls that are all refused are each sent again at most once", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, limits: ONE_A_SECOND });
  const other = hub.request(`${server.origin}/other`);
  await arrived(1);
  held[0]?.end();
  await (await other).body.text();
  const calls = 50;
  for (const maxWaitMs of [undefined, 0, 500]) {
    // Called once for each request that looks for one to join, and once for each that is sent.
    const identified = t.mock.method(CallerIdentity.prototype, "apply");
    const refused = Array.from({ length: calls }, () =>
      assert.rejects(hub.request(server.origin, { maxWaitMs }), RateLimitExceeded),
    );
    await settles(Promise.all(refused));
    assert.ok(identified.mock.callCount() <= 3 * calls, `${identified.mock.callCount()} for ${calls} calls`);
    identified.mock.restore();
  }
  assertNothingLeft(hub, time);
});

test("calls that may wait without limit share one request after the refusal of a call that may not", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, limits: ONE_A_SECOND });
  const other = hub.request(`${server.origin}/other`);
  await arrived(1);
  held[0]?.end();
  await (await other).body.text();
  const refused = assert.rejects(hub.request(server.origin, { maxWaitMs: 0 }), RateLimitExceeded);
  const patient = Array.from({ length: 5 }, () => hub.request(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY }));
  await settles(refused);
  await time.advance(1000);
  await arrived(2);
  held[1]?.setHeader("cache-control", "max-age=60").end("shared");
  for (const call of patient) assert.equal(await (await call).body.text(), "shared");
  assert.equal(server.requests.length, 2);
});

test("a follower that leads since its leader aborted is not refused by the bound of the former leader", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    limits: { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_concurrent: 1 } } },
  });
  const slow = hub.request(`${server.origin}/slow`);
  await arrived(1);
  const controller = new AbortController();
  const former = hub.request(server.origin, { maxWaitMs: 800, signal: controller.signal });
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(500);
  const own = hub.request(server.origin, { maxWaitMs: 800 });
  const endless = hub.request(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY });
  await until(() => hub.snapshot().calls === 4);
  controller.abort();
  await assert.rejects(former, { name: "AbortError" });
  const refused = assert.rejects(own, { name: "BusyError" });
  await time.advance(799);
  assert.equal(hub.snapshot().calls, 3, "its own bound has not been reached");
  await time.advance(1);
  await settles(refused);
  held[0]?.end();
  await (await slow).body.text();
  await arrived(2);
  held[1]?.end("endless");
  assert.equal(await (await endless).body.text(), "endless");
  assertNothingLeft(hub, time);
});

test("time that a follower spent in the queue of the leader counts against its own maxWaitMs", async t => {
  const time = new FakeTime();
  const { server, hub, arrived } = await heldServer(t, {
    time,
    limits: { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_concurrent: 1 } } },
  });
  const refusedMs: number[] = [];
  const wait = async () => {
    await assert.rejects(hub.request(server.origin, { maxWaitMs: 100 }), { name: "BusyError" });
    refusedMs.push(time.monotonicUs() / 1000);
  };
  void hub.request(`${server.origin}/slow`).catch(() => undefined);
  await arrived(1);
  const first = wait();
  await time.advance(50);
  const second = wait();
  await time.advance(300);
  await Promise.all([first, second]);
  assert.deepEqual(refusedMs, [100, 150]);
});

test("time that a follower waited for the circuit of the leader counts against its own maxBreakerWaitMs", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { time });
  const host = new URL(server.origin).hostname;
  const call = { maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs: 50_000 };
  hub.breakers.open(host, { seconds: 40 });
  const calls = [hub.request(server.origin, call), hub.request(server.origin, call)];
  const refused = Promise.all(calls.map(each => assert.rejects(each, BreakerOpenError)));
  await until(() => hub.snapshot().calls === 2 && hub.snapshot().waiting === 1);
  await time.advance(30_000);
  // 20 s are left for each of the two.
  hub.breakers.open(host, { seconds: 45 });
  await settles(refused);
  assertNothingLeft(hub, time);
});

test("a call does not join a queued request that may wait longer because of its deadline", async t => {
  const { held, server, hub, arrived } = await heldServer(t, {
    limits: { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_concurrent: 1 } } },
  });
  const answers = [hub.request(`${server.origin}/slow`)];
  await arrived(1);
  answers.push(hub.request(server.origin, { deadlineMs: 60_000 }), hub.request(server.origin));
  await until(() => hub.snapshot().waiting === 2);
  for (let count = 1; count <= 3; count += 1) {
    await arrived(count);
    held[count - 1]?.end("answer");
    await (await answers[count - 1])?.body.text();
  }
  assert.equal(server.requests.length, 3);
});

test("a caller that does not read its body does not delay the others", async t => {
  const { held, hub, server, arrived } = await heldServer(t);
  const unread = hub.fetch(server.origin);
  const reader = hub.fetch(server.origin);
  await arrived(1);
  held[0]?.setHeader("cache-control", "max-age=60");
  for (let chunk = 0; chunk < 30; chunk += 1) held[0]?.write(CHUNK);
  held[0]?.end();
  assert.equal((await (await reader).arrayBuffer()).byteLength, 30 * CHUNK.length);
  assert.equal((await (await unread).arrayBuffer()).byteLength, 30 * CHUNK.length);
  assert.equal(server.requests.length, 1);
});

test("a response that becomes too long to store goes on to the leader, and the followers are sent again", async t => {
  const { held, hub, server, arrived } = await heldServer(t);
  const answers = [hub.fetch(server.origin), hub.fetch(server.origin)];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  const send = (response: ServerResponse | undefined) => {
    response?.setHeader("cache-control", "max-age=60");
    for (let chunk = 0; chunk < 100; chunk += 1) response?.write(CHUNK);
    response?.end();
  };
  send(held[0]);
  const first = (await answers[0])?.arrayBuffer();
  await arrived(2);
  send(held[1]);
  const second = (await answers[1])?.arrayBuffer();
  assert.deepEqual(
    (await Promise.all([first, second])).map(body => body?.byteLength),
    [100 * CHUNK.length, 100 * CHUNK.length],
  );
});

test("a response too long to store ends when its reader aborts, and the followers are sent again", async t => {
  const responses: ServerResponse[] = [];
  let isClosed = false;
  const server = await serve(t, (_, response, number) => {
    response.setHeader("cache-control", "max-age=60");
    if (number > 1) {
      response.end("mine");
      return;
    }
    responses.push(response);
    response.on("close", () => {
      isClosed = true;
    });
    response.flushHeaders();
  });
  const time = new FakeTime();
  const hub = await hubFor(t, { time });
  const controller = new AbortController();
  const first = await hub.request(server.origin, { signal: controller.signal });
  const other = hub.request(server.origin);
  await until(() => hub.snapshot().calls === 2);
  const reading = assert.rejects(first.body.text(), /enough/);
  controller.abort(new Error("enough"));
  await reading;
  assert.equal(isClosed, false, "another caller still waits for it");
  // More bytes than the cache stores, without an end.
  for (const response of responses) response.write(Buffer.alloc(8_388_608));
  assert.equal(await (await settles(other)).body.text(), "mine");
  await until(() => isClosed);
  assertNothingLeft(hub, time);
});

test("a call that may not wait is refused at once, also while an identical call waits in the queue", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { time, limits: ONE_A_MINUTE });
  await (await hub.request(`${server.origin}/other`)).body.text();
  const patient = hub.request(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await assert.rejects(settles(hub.request(server.origin, { maxWaitMs: 0 })), RateLimitExceeded);
  await time.advance(60_000);
  assert.equal(await (await patient).body.text(), "ok");
  assert.equal(server.requests.length, 2);
});

test("a call that may not wait for a circuit is refused at once, also while an identical call waits for it", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { time });
  hub.breakers.open(new URL(server.origin).hostname, { seconds: 60 });
  const patient = hub.request(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY });
  await until(() => hub.snapshot().waiting === 1);
  for (const maxWaitMs of [Number.POSITIVE_INFINITY, 120_000]) {
    const call = { maxWaitMs, maxBreakerWaitMs: 0 };
    await assert.rejects(settles(hub.request(server.origin, call)), BreakerOpenError);
  }
  await time.advance(61_000);
  assert.equal(await (await patient).body.text(), "ok");
  assert.equal(server.requests.length, 1);
});

test("a call that may not wait shares the response of an identical request that was already sent", async t => {
  const responses: ServerResponse[] = [];
  const server = await serve(t, (_, response) => {
    responses.push(response.setHeader("cache-control", "max-age=60"));
  });
  const hub = await hubFor(t, { time: new FakeTime(), limits: ONE_A_MINUTE });
  const patient = hub.request(server.origin);
  await until(() => responses.length === 1);
  const other = hub.request(server.origin, { maxWaitMs: 0 });
  await until(() => hub.snapshot().calls === 2);
  for (const response of responses) response.end("shared");
  for (const answer of [patient, other]) assert.equal(await (await answer).body.text(), "shared");
  assert.equal(server.requests.length, 1);
});

test("a follower that is sent again is dispatched in the asynchronous context of its own caller", async t => {
  const responses: ServerResponse[] = [];
  const server = await serve(t, (_, response) => {
    responses.push(response.setHeader("cache-control", "no-store"));
  });
  const context = new AsyncLocalStorage<string>();
  const { wire, seen } = contextRecordingWire(t, context);
  const hub = await hubFor(t, { dispatcher: wire });
  const answers = ["one", "two"].map(name =>
    context.run(name, async () => (await hub.request(server.origin)).body.text()),
  );
  for (const number of [1, 2]) {
    await until(() => responses.length === number);
    responses[number - 1]?.end("ok");
  }
  await Promise.all(answers);
  assert.deepEqual(seen, ["one", "two"]);
});

test("a paused follower that is sent again stays paused", async t => {
  const { held, server, hub, arrived } = await heldServer(t);
  const first = dispatchTo(hub, server.origin, new RecordingHandler());
  const second = dispatchTo(hub, server.origin, new RecordingHandler(true));
  await arrived(1);
  held[0]?.setHeader("cache-control", "no-store").end("not for sharing");
  await first.waitFor("end");
  await arrived(2);
  held[1]?.setHeader("cache-control", "no-store").end("his own");
  await second.waitFor("head 200");
  // A later request to the same server has been answered: data that was not held back would have arrived.
  const other = dispatchTo(hub, `${server.origin}/other`, new RecordingHandler());
  await arrived(3);
  held[2]?.end("other");
  await other.waitFor("end");
  assert.deepEqual({ lines: second.lines, bytes: second.bytes }, { lines: ["head 200"], bytes: 0 });
  second.controller.resume();
  await second.waitFor("end");
  assert.equal(second.bytes, "his own".length);
});

for (const status of [200, 500])
  test(`a ${status} whose body breaks off fails all callers that waited for it, and is requested once`, async t => {
    const { held, server, hub, arrived } = await heldServer(t);
    const first = dispatchTo(hub, server.origin, new RecordingHandler());
    const others = [1, 2, 3].map(() => dispatchTo(hub, server.origin, new RecordingHandler()));
    await arrived(1);
    held[0]?.writeHead(status, { "content-length": "100", "cache-control": "max-age=60" }).write("we are sor");
    await first.waitFor(`head ${status}`);
    held[0]?.destroy();
    await until(() => first.lines.length === 2);
    assert.match(first.lines[1] ?? "", /^error /);
    for (const { lines } of others) assert.deepEqual(lines, [first.lines[1]]);
    assert.equal(server.requests.length, 1);
    assertNothingLeft(hub);
  });

const GETTERS: Readonly<Record<string, (hub: Hub, url: string, follows: boolean) => Promise<string>>> = {
  "hub.fetch": async (hub, url, follows) => (await hub.fetch(url, { redirect: follows ? "follow" : "manual" })).text(),
  "hub.request": async (hub, url, follows) =>
    (await hub.request(url, { maxRedirections: follows ? 3 : 0 })).body.text(),
};
for (const [way, get] of Object.entries(GETTERS))
  test(`${way}: callers that follow a shared redirect do not wait for its body`, async t => {
    const time = new FakeTime();
    const held: ServerResponse[] = [];
    const server = await serve(t, (request, response) => {
      if (request.url === "/end") response.end("end");
      else held.push(response.writeHead(301, { location: "/end", "cache-control": "max-age=60" }));
    });
    const hub = await hubFor(t, { time, retry: false });
    const [reader, ...followers] = [false, true, true].map(follows => get(hub, server.origin, follows));
    await until(() => held.length === 1 && hub.snapshot().calls === 3);
    held[0]?.write("moved");
    assert.deepEqual(await settles(Promise.all(followers)), ["end", "end"]);
    held[0]?.end(" for ever");
    assert.equal(await settles(reader as Promise<string>), "moved for ever");
    assert.equal(held.length, 1);
    assertNothingLeft(hub, time);
  });

test("when the leader aborts, the next follower gets the response while it arrives, and nothing is sent again", async t => {
  const { held, server, hub, arrived } = await heldServer(t);
  const events = recordEvents(hub);
  const first = dispatchTo(hub, server.origin, new RecordingHandler());
  const second = dispatchTo(hub, server.origin, new RecordingHandler());
  await arrived(1);
  first.controller.abort(new Error("enough"));
  held[0]?.setHeader("cache-control", "no-store").end("not for sharing");
  await second.waitFor("end");
  assert.equal(second.bytes, "not for sharing".length);
  assert.deepEqual(first.lines, ["error enough"]);
  assert.equal(only(events, "ratelimit.acquire").length, 1);
});

test("a follower that was sent again can be aborted, and its request ends", async t => {
  const { held, server, hub, arrived } = await heldServer(t);
  const first = dispatchTo(hub, server.origin, new RecordingHandler());
  const second = dispatchTo(hub, server.origin, new RecordingHandler());
  await arrived(1);
  held[0]?.setHeader("cache-control", "no-store").end("not for sharing");
  await first.waitFor("end");
  await arrived(2);
  let isClosed = false;
  held[1]?.on("close", () => {
    isClosed = true;
  });
  second.controller.abort(new Error("enough"));
  await until(() => isClosed);
  await until(() => hub.snapshot().inFlight === 0);
  assert.deepEqual(second.lines, ["error enough"]);
});

test("a follower that aborts while the response arrives does not affect the other callers", async t => {
  const { held, server, hub, arrived } = await heldServer(t);
  const first = dispatchTo(hub, server.origin, new RecordingHandler());
  const second = dispatchTo(hub, server.origin, new RecordingHandler());
  await arrived(1);
  second.controller.abort(new Error("enough"));
  held[0]?.end("whole");
  await first.waitFor("end");
  assert.equal(first.bytes, "whole".length);
  assert.deepEqual(second.lines, ["error enough"]);
  assert.equal(server.requests.length, 1);
});

for (const [how, status] of [
  ["confirmed", 304],
  ["served for want of a better one", 503],
] as const) {
  test(`a stored response that is ${how} is served to all waiting callers`, async t => {
    const time = new FakeTime();
    const { held, server, hub, arrived } = await heldServer(t, { time });
    const before = dispatchTo(hub, server.origin, new RecordingHandler());
    await arrived(1);
    held[0]?.writeHead(200, { etag: '"one"', "cache-control": "max-age=60, stale-if-error=600" }).end("older");
    await before.waitFor("end");
    await time.advance(60_000);
    const waiting = Array.from({ length: 3 }, () => dispatchTo(hub, server.origin, new RecordingHandler()));
    await arrived(2);
    held[1]?.writeHead(status).end();
    for (const handler of waiting) {
      await handler.waitFor("end");
      assert.deepEqual({ lines: handler.lines, bytes: handler.bytes }, { lines: ["head 200", "end"], bytes: 5 });
    }
    assert.equal(server.requests.length, 2);
  });
}

/** A stored response that is stale, and a server whose later responses begin but do not end. */
async function unendingServer(t: TestContext, control: string, status: number, bodyMs: number) {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time });
  const events = recordEvents(hub);
  const get = async () => (await hub.request(server.origin)).body.text();
  const first = get();
  await arrived(1);
  held[0]?.writeHead(200, { "cache-control": control, etag: '"one"' }).end("stored");
  assert.equal(await first, "stored");
  await time.advance(2000);
  assert.equal(time.armedTimers, 0);
  const again = get();
  await arrived(2);
  held[1]?.writeHead(status, { "cache-control": "max-age=60" }).write("x");
  assert.equal(await again, "stored");
  // The head of the second response has arrived.
  await until(() => time.nextTimerMs === bodyMs);
  return { time, server, hub, events };
}

test("a response that no caller needs any more is aborted when its body does not end", async t => {
  const { time, hub } = await unendingServer(t, "max-age=1, stale-if-error=600", 500, 1000);
  assert.equal(hub.snapshot().inFlight, 1);
  await time.advance(1000);
  await until(() => hub.snapshot().inFlight === 0);
  await settles(hub.close());
  assertNothingLeft(hub, time);
});

test("a background refresh whose body does not end is aborted, so that close resolves", async t => {
  const { time, hub, events } = await unendingServer(t, "max-age=1, stale-while-revalidate=600", 200, 60_000);
  const closed = hub.close();
  await time.advance(59_999);
  assert.equal(hub.snapshot().inFlight, 1);
  await time.advance(1);
  await settles(closed);
  assertNothingLeft(hub, time);
  const refresh = only(events, "http_request").find(({ background }) => background);
  assert.deepEqual([refresh?.status, refresh?.error, refresh?.aborted], [200, "UND_ERR_BODY_TIMEOUT", false]);
});

for (const [busy, rates, waitMs] of [
  ["rate limit", "2/HOUR", 0],
  ["slot", "1000/SECOND", 60_000],
] as const)
  test(`a background refresh waits for a ${busy} for at most 60 s, however long the call may wait`, async t => {
    const time = new FakeTime();
    const server = await serve(t, (_, response, number) => {
      if (number === 1) response.setHeader("cache-control", "max-age=1, stale-while-revalidate=600").end("older");
      else response.flushHeaders();
    });
    const limits = { defaults: { metadata: { rates, guard_ms: 0, max_concurrent: 1 } } };
    const hub = await hubFor(t, { time, limits, unreadBodyMs: 1_000_000 });
    const get = async () =>
      (await hub.fetch(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs: 1e9 })).text();
    assert.equal(await get(), "older");
    // Uses the second unit of the rate limit, and the slot.
    const other = await hub.request(`${server.origin}/other`);
    await time.advance(2000);
    const refreshed = recordEvents(hub);
    assert.equal(await get(), "older");
    await time.advance(waitMs);
    await until(() => only(refreshed, "http_request").length === 2);
    other.body.on("error", () => undefined).destroy();
    await settles(hub.close());
    assertNothingLeft(hub, time);
    assert.equal(server.requests.length, 2);
  });

test("a background refresh that a caller has joined continues until that caller leaves", async t => {
  const { time, server, hub } = await unendingServer(t, "max-age=1, stale-while-revalidate=4", 200, 60_000);
  await time.advance(5000);
  const controller = new AbortController();
  const joined = hub.request(server.origin, { signal: controller.signal });
  await until(() => hub.snapshot().calls === 1);
  await time.advance(100_000);
  assert.equal(hub.snapshot().inFlight, 1);
  assert.equal(server.requests.length, 2);
  controller.abort();
  await assert.rejects(joined, { name: "AbortError" });
  await until(() => hub.snapshot().inFlight === 0);
  assertNothingLeft(hub, time);
});

test("a background refresh that destroy ends is reported as aborted", async t => {
  const { hub, events } = await unendingServer(t, "max-age=1, stale-while-revalidate=600", 200, 60_000);
  await hub.destroy();
  const refresh = only(events, "http_request").find(({ background }) => background);
  assert.deepEqual([refresh?.status, refresh?.error, refresh?.aborted], [200, "DOCSTOKG_CLOSED", true]);
});
