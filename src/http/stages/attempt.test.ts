import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { test } from "node:test";
import { hubFor, only, recordEvents, serve, until } from "../../../test/http/kit.ts";
import { BodyUnreadError, DeadlineExceededError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";

const CHUNK = Buffer.alloc(65_536, "x");

/** More than anybody buffers on the way, so that it cannot all be sent unless somebody reads it. */
function large(response: ServerResponse): void {
  Readable.from(Array.from({ length: 400 }, () => CHUNK)).pipe(response);
}

test("a host that allows one request at a time is called over one connection", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    cache: false,
    limits: { defaults: { metadata: { rates: "1000/SECOND", max_concurrent: 1 } } },
  });
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => hub.fetch(`${server.origin}/${n}`)));
  assert.deepEqual(await Promise.all(answers.map(answer => answer.text())), Array(10).fill("ok"));
  assert.equal(server.connections, 1);
});

test("a slot is held until the body has been read, and the next request waits for it", async t => {
  const server = await serve(t, (request, response) =>
    request.url === "/large" ? large(response) : response.end("ok"),
  );
  const hub = await hubFor(t, { cache: false, limits: { global: { max_inflight: 1 } } });
  const first = await hub.fetch(`${server.origin}/large`);
  const second = hub.fetch(`${server.origin}/small`);
  await until(() => hub.snapshot().waiting === 1);
  assert.equal(server.requests.length, 1);
  assert.equal((await first.arrayBuffer()).byteLength, 400 * CHUNK.length);
  assert.equal(await (await second).text(), "ok");
});

for (const [how, drop] of [
  ["cancelled", (response: Response) => response.body?.cancel()],
  ["aborted", (_: Response, controller: AbortController) => controller.abort()],
] as const) {
  test(`a body that is ${how} frees its slot`, async t => {
    const server = await serve(t, (request, response) =>
      request.url === "/large" ? large(response) : response.end("ok"),
    );
    const hub = await hubFor(t, { cache: false, limits: { global: { max_inflight: 1 } } });
    const controller = new AbortController();
    const first = await hub.fetch(`${server.origin}/large`, { signal: controller.signal });
    const second = hub.fetch(`${server.origin}/small`);
    await until(() => hub.snapshot().waiting === 1);
    await drop(first, controller);
    assert.equal(await (await second).text(), "ok");
    assert.equal(hub.snapshot().inFlight, 0);
  });
}

test("a connection that breaks in mid-body frees its slot, fails the reader and counts against the host", async t => {
  let cut: () => unknown = () => assert.fail("no request came");
  const server = await serve(t, (_, response) => {
    response.writeHead(200, { "content-length": "1000" }).write("half of it");
    cut = () => response.destroy();
  });
  const hub = await hubFor(t, { cache: false });
  const events = recordEvents(hub);
  const response = await hub.fetch(server.origin);
  cut();
  await assert.rejects(response.text());
  assert.equal(hub.snapshot().inFlight, 0);
  assert.equal(only(events, "breaker_failure").length, 1);
  assert.equal(only(events, "breaker_success").length, 0);
});

test("a body that nobody reads is reported once and given up, and its slot is free", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) =>
    request.url === "/large" ? large(response) : response.end("ok"),
  );
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 30_000, limits: { global: { max_inflight: 1 } } });
  const events = recordEvents(hub);
  const { body } = await hub.request(`${server.origin}/large`);
  await until(() => time.armedTimers === 1);
  const second = hub.request(`${server.origin}/small`);
  await time.advance(29_999);
  assert.equal(hub.snapshot().inFlight, 1);
  await time.advance(1);
  assert.equal(await (await second).body.text(), "ok");
  assert.equal(only(events, "body_unread").length, 1);
  await assert.rejects(body.text(), BodyUnreadError);
  assert.equal(time.armedTimers, 0);
  assert.equal(only(events, "breaker_failure").length, 0);
});

test("a slow reader is not taken for one that reads no more", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => large(response));
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 30_000 });
  const events = recordEvents(hub);
  const { body } = await hub.request(server.origin);
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    await time.advance(1000);
  }
  assert.equal(bytes, 400 * CHUNK.length);
  assert.equal(only(events, "body_unread").length, 0);
});

test("a deadline ends a call wherever it is: in line for a slot, on the wire, or in mid-body", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    if (request.url === "/half") response.writeHead(200, { "content-length": "1000" }).write("half of it");
  });
  const hub = await hubFor(t, { time, cache: false, limits: { global: { max_inflight: 2 } } });
  const onTheWire = hub.request(`${server.origin}/silent`, { deadlineMs: 500 });
  await until(() => server.requests.length === 1);
  const { body } = await hub.request(`${server.origin}/half`, { deadlineMs: 500 });
  const inLine = hub.request(`${server.origin}/never`, { deadlineMs: 500 });
  await until(() => hub.snapshot().waiting === 1);
  const failures = Promise.allSettled([onTheWire, body.text(), inLine]);
  await time.advance(500);
  for (const { reason } of (await failures) as PromiseRejectedResult[])
    assert.ok(reason instanceof DeadlineExceededError);
  const [, , { reason }] = (await failures) as [unknown, unknown, PromiseRejectedResult];
  assert.match(reason.message, /500 ms of it queued/);
  await until(() => hub.snapshot().inFlight === 0);
  // One that got the slot at the last moment was dropped over a new connection, and counts for a moment yet.
  await time.advance(100);
  const { calls, waiting } = hub.snapshot();
  assert.deepEqual({ calls, waiting, timers: time.armedTimers }, { calls: 0, waiting: 0, timers: 0 });
});

test("who cannot be served before his deadline is told at once, and a deadline alone is willingness to wait", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  await (await hub.request(server.origin)).body.text();
  const willing = hub.request(server.origin, { deadlineMs: 1500 });
  await until(() => hub.snapshot().waiting === 1);
  await assert.rejects(hub.request(server.origin, { deadlineMs: 1500, maxWaitMs: Number.POSITIVE_INFINITY }), {
    name: "RateLimitExceeded",
    retryAfterMs: 2000,
    message: /waits at most 1\.5 s \(the time left of deadlineMs\)$/,
  });
  await time.advance(1000);
  assert.equal((await willing).statusCode, 200);
});

test("a host that was silent for most of a deadline has failed; one that was hardly asked has not", async t => {
  const time = new FakeTime();
  const server = await serve(t, () => undefined);
  const hub = await hubFor(t, {
    time,
    cache: false,
    retry: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const silent = hub.request(server.origin, { deadlineMs: 500 });
  const late = hub.request(server.origin, { deadlineMs: 1500, maxWaitMs: 1500 });
  const ends = Promise.allSettled([silent, late]);
  await until(() => server.requests.length === 1);
  await time.advance(500);
  assert.equal(only(events, "breaker_failure").length, 1);
  // Over a new connection it counted as being written for a moment.
  await time.advance(600);
  await until(() => server.requests.length === 2);
  await time.advance(400);
  await ends;
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(only(events, "breaker_failure").length, 1);
});

for (const client of ["fetch", "request", "installed fetch"] as const) {
  test(`what is aborted in line leaves at once and is never sent (${client})`, async t => {
    const time = new FakeTime();
    const server = await serve(t, (_, response) => response.end("ok"));
    const hub = await hubFor(t, {
      time,
      cache: false,
      limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 10_000 } } },
    });
    const uninstall = client === "installed fetch" ? hub.install() : () => undefined;
    t.after(uninstall);
    const send = client === "request" ? hub.request : client === "fetch" ? hub.fetch : fetch;
    await send(server.origin);
    const controller = new AbortController();
    const waiting = send(server.origin, { signal: controller.signal });
    const behind = send(server.origin);
    await until(() => hub.snapshot().waiting === 2);
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    assert.equal(hub.snapshot().waiting, 1);
    // Nobody waits for one who has left.
    await time.advance(1000);
    await behind;
    assert.equal(server.requests.length, 2);
    uninstall();
  });
}

test("a stream that breaks while its request is in line fails that request and nothing else", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 10_000 } } },
  });
  await (await hub.request(server.origin)).body.text();
  const body = new Readable({ read: () => undefined });
  const waiting = hub.request(server.origin, { method: "POST", body });
  await until(() => hub.snapshot().waiting === 1);
  body.destroy(new Error("the disk is gone"));
  await assert.rejects(waiting, /the disk is gone/);
  assert.equal(hub.snapshot().waiting, 0);
  assert.equal(server.requests.length, 1);
});
