import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer, get as httpGet, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Agent, type Dispatcher, ProxyAgent, RetryAgent, upgrade } from "undici";
import { startProxy } from "../../../test/http/connect-proxy.ts";
import { dispatchRecorded, dispatchTo, RecordingHandler } from "../../../test/http/handlers.ts";
import {
  assertNothingLeft,
  CHUNK,
  heldServer,
  hubFor,
  ONE_A_SECOND,
  ONE_A_SECOND_QUEUED,
  only,
  recordEvents,
  sendLargeBody,
  serve,
  settles,
  type TestHubOptions,
  until,
} from "../../../test/http/kit.ts";
import { exampleAt, goingAwayServer, silentTlsServer } from "../../../test/http/tls-servers.ts";
import { BareWire, FakeWire } from "../../../test/http/wires.ts";
import { BreakerOpenError, RateLimitExceeded } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";

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
    request.url === "/large" ? sendLargeBody(response) : response.end("ok"),
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
      request.url === "/large" ? sendLargeBody(response) : response.end("ok"),
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

test("a connection that breaks within a body frees the slot, fails the reader and is a failure of the host", async t => {
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

test("a host that was silent for most of a deadline has failed; one that was called shortly before it has not", async t => {
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
  const late = hub.request(server.origin, { deadlineMs: 7000, maxWaitMs: 7000 });
  const ends = Promise.allSettled([silent, late]);
  await until(() => server.requests.length === 1);
  await time.advance(500);
  assert.equal(only(events, "breaker_failure").length, 1);
  // Over a new connection the request counted as being written for 5 s.
  await time.advance(5500);
  await until(() => server.requests.length === 2);
  await time.advance(1000);
  await ends;
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(only(events, "breaker_failure").length, 1);
});

/** What `AbortSignal.timeout(ms)` does, on the clock of the test. */
function timeoutSignal(time: FakeTime, ms: number): AbortSignal {
  const controller = new AbortController();
  time.setTimer(ms, () =>
    controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError")),
  );
  return controller.signal;
}

function nodeGet(url: string, { signal }: { readonly signal: AbortSignal }): Promise<unknown> {
  return new Promise((resolve, reject) => httpGet(url, { signal }, resolve).on("error", reject));
}

for (const client of ["fetch", "request", "installed fetch", "node:http"] as const) {
  test(`calls with AbortSignal.timeout open the circuit of a host that hangs (${client})`, async t => {
    const time = new FakeTime();
    const server = await serve(t, () => undefined);
    const hub = await hubFor(t, { time, cache: false, retry: false });
    const isInstalled = client === "installed fetch" || client === "node:http";
    t.after(isInstalled ? hub.install({ maxWaitMs: 0 }) : () => undefined);
    const send = client === "request" ? hub.request : client === "fetch" ? hub.fetch : fetch;
    const get = client === "node:http" ? nodeGet : send;
    for (let call = 1; call <= 5; call += 1) {
      const answer = get(server.origin, { signal: timeoutSignal(time, 1000) });
      const ended = assert.rejects(answer);
      await until(() => server.requests.length === call);
      await time.advance(1000);
      await ended;
      await until(() => hub.snapshot().inFlight === 0);
    }
    for (let call = 0; call < 35; call += 1)
      await assert.rejects(get(server.origin, { signal: new AbortController().signal }));
    assert.equal(server.requests.length, 5);
    assert.equal(hub.snapshot().hosts[0]?.state, "open");
  });
}

test("calls with AbortSignal.timeout open the circuit of a host whose connections hang", async t => {
  const time = new FakeTime();
  let lookups = 0;
  const lookup = () => {
    lookups += 1;
  };
  const hub = await hubFor(t, { time, cache: false, retry: false, network: { lookup } });
  for (let call = 1; call <= 5; call += 1) {
    const ended = assert.rejects(hub.fetch("http://hanging.example/", { signal: timeoutSignal(time, 1000) }));
    await until(() => hub.snapshot().inFlight === 1);
    await time.advance(1000);
    await ended;
  }
  await assert.rejects(hub.fetch("http://hanging.example/"), { name: "BreakerOpenError" });
  assert.ok(lookups <= 5);
  assert.equal(hub.snapshot().inFlight, 0);
});

test("a timeout that several calls share is no failure of a host that was called shortly before it", async t => {
  const time = new FakeTime();
  const server = await serve(t, () => undefined);
  const hub = await hubFor(t, { time, cache: false, retry: false });
  const events = recordEvents(hub);
  const controller = new AbortController();
  const { signal } = controller;
  const early = hub.fetch(server.origin, { signal });
  await until(() => server.requests.length === 1);
  await time.advance(900);
  const late = Promise.allSettled(Array.from({ length: 9 }, () => hub.fetch(server.origin, { signal })));
  await until(() => server.requests.length === 10);
  await time.advance(100);
  controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  await assert.rejects(early);
  await late;
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(only(events, "breaker_failure").length, 1);
});

test("after an outage a host that answers 404 gets all its calls again", async t => {
  const time = new FakeTime();
  let isDown = true;
  const server = await serve(t, (_, response) => {
    response.statusCode = isDown ? 503 : 404;
    response.end("none");
  });
  const hub = await hubFor(t, { time, random: () => 0, cache: false, retry: false });
  const get = async () => {
    const response = await hub.fetch(server.origin);
    await response.text();
    return response.status;
  };
  for (let call = 0; call < 5; call += 1) assert.equal(await get(), 503);
  await assert.rejects(get(), { name: "BreakerOpenError" });
  isDown = false;
  await time.advance(45_000);
  for (let call = 0; call < 180; call += 1) assert.equal(await get(), 404);
  assert.equal(hub.snapshot().hosts[0]?.state, "closed");
});

test("a 404 whose body breaks off is a failure, also for a trial call", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    response.writeHead(number <= 5 ? 503 : 404, number <= 5 ? {} : { "content-length": 100 });
    if (number <= 5) response.end();
    else response.write("part", () => response.destroy());
  });
  const hub = await hubFor(t, { time, random: () => 0, cache: false, retry: false });
  const get = async () => (await hub.fetch(server.origin)).text();
  for (let call = 0; call < 5; call += 1) await get();
  await time.advance(45_000);
  await assert.rejects(get());
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(hub.snapshot().hosts[0]?.state, "open");
});

for (const client of ["fetch", "request", "installed fetch"] as const) {
  test(`a request that is aborted in the queue ends at once and is never sent (${client})`, async t => {
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
    // The aborted request does not delay the next one.
    await time.advance(1000);
    await behind;
    assert.equal(server.requests.length, 2);
    uninstall();
  });
}

test("requests that a closing HTTP/2 session did not process are sent again, each with its own grant, and count as no failure", async t => {
  const time = new FakeTime();
  const server = await goingAwayServer(t);
  const hub = await hubFor(t, {
    time,
    cache: false,
    // No retry is needed: a session that ends is not a failure.
    retry: false,
    network: exampleAt(server.port),
    // The window is used up: a resent request waits for the next minute, where a new call would be refused.
    limits: { defaults: { metadata: { rates: "21/MINUTE", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const ask = async (path: string) => (await hub.request(`https://example.org${path}`)).body.text();
  // The session is open before the other requests, so that all of them use it.
  await ask("/");
  const answers = Promise.all(Array.from({ length: 20 }, (_, at) => ask(`/${at}`)));
  await Promise.race([answers, until(() => hub.snapshot().waiting > 0 && hub.snapshot().inFlight === 0)]);
  assert.ok(server.requests < 21);
  await time.advance(60_000);
  assert.deepEqual(await settles(answers), Array(20).fill("ok"));
  assert.equal(server.requests, 21);
  const granted = only(events, "ratelimit.acquire").filter(({ outcome }) => outcome === "granted");
  assert.ok(granted.length > server.requests, "requests that were not processed had their own grants");
  assert.equal(only(events, "breaker_failure").length, 0);
  await until(() => hub.snapshot().inFlight === 0);
  assertNothingLeft(hub, time);
});

test("an abort while connecting returns slot and grant at once, and the request is never sent", async t => {
  const time = new FakeTime();
  const server = await silentTlsServer(t);
  const hub = await hubFor(t, {
    time,
    cache: false,
    network: exampleAt(server.port),
    limits: {
      global: { max_inflight: 1 },
      defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 0 } },
    },
  });
  const controller = new AbortController();
  const aborted = hub.request("https://example.org/aborted", { signal: controller.signal });
  await until(() => server.sockets.length === 1);
  controller.abort(new Error("enough"));
  await assert.rejects(settles(aborted), /enough/);
  assertNothingLeft(hub, time);
  // The only slot, and the only request of this minute.
  const later = hub.request("https://example.org/later");
  await until(() => hub.snapshot().inFlight === 1);
  server.speak();
  assert.equal(await (await settles(later)).body.text(), "ok");
  // A connection is closed when all its requests have ended, the aborted one too.
  await settles(hub.close());
  assert.deepEqual(server.paths, ["/later"]);
});

test("a 500 is reported as a failure although its body is not read", async t => {
  const server = await serve(t, (_, response) => {
    response.writeHead(500).write("we are sor");
  });
  const hub = await hubFor(t, { cache: false, retry: false });
  const events = recordEvents(hub);
  const answer = await hub.fetch(server.origin);
  await answer.body?.cancel();
  await until(() => only(events, "http_request").length === 1);
  assert.deepEqual(
    only(events, "http_request").map(({ status, breaker_recorded }) => ({ status, breaker_recorded })),
    [{ status: 500, breaker_recorded: "failure" }],
  );
});

test("a dispatcher that throws fails only that request, after dispatch has returned", async t => {
  const time = new FakeTime();
  const wire = new BareWire(() => {
    throw new Error("out of order");
  });
  const hub = await hubFor(t, { time, dispatcher: wire });
  assert.deepEqual(await dispatchRecorded(hub.dispatcher(), "http://example.org"), ["start", "error out of order"]);
  await assert.rejects(hub.request("http://example.org/"), /out of order/);
  await assert.rejects(hub.fetch("http://example.org/"), ({ cause }: Error) => /out of order/.test(String(cause)));
  assertNothingLeft(hub, time);
});

test("a dispatcher may fail a request before it has called onRequestStart", async t => {
  const time = new FakeTime();
  const wire = new BareWire(handler => {
    const failure = Object.assign(new Error("nobody there"), { code: "ECONNREFUSED" });
    handler.onResponseError?.(null as unknown as Dispatcher.DispatchController, failure);
  });
  const hub = await hubFor(t, { time, dispatcher: wire, retry: false });
  const events = recordEvents(hub);
  await assert.rejects(hub.request("http://example.org/"), /nobody there/);
  assert.equal(only(events, "breaker_failure").length, 1);
  assertNothingLeft(hub, time);
});

test("a request that was written counts in its windows, also when its caller aborts before the response", async t => {
  const { server, hub, arrived } = await heldServer(t, { time: new FakeTime(), cache: false, limits: ONE_A_SECOND });
  const controller = new AbortController();
  const left = hub.request(server.origin, { signal: controller.signal });
  await arrived(1);
  controller.abort(new Error("enough"));
  await assert.rejects(left, /enough/);
  await until(() => hub.snapshot().inFlight === 0);
  await assert.rejects(hub.request(server.origin), RateLimitExceeded);
});

test("an unanswered request over a new connection counts from 5 s after it was sent", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, cache: false, limits: ONE_A_SECOND_QUEUED });
  const first = hub.request(server.origin);
  await arrived(1);
  const second = hub.request(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(5999);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(hub.snapshot().waiting, 0);
  await arrived(2);
  for (const response of held) response.end();
  for (const answer of [first, second]) await (await answer).body.text();
});

for (const [name, makeDispatcher] of Object.entries({
  ProxyAgent: (uri: string) => new ProxyAgent({ uri, proxyTunnel: true }),
  RetryAgent: () => new RetryAgent(new Agent(), { maxRetries: 0 }),
}))
  test(`a request over a ${name} of the caller, which reports no connections, counts from its response`, async t => {
    const time = new FakeTime();
    const held: ServerResponse[] = [];
    const server = await serve(t, (_, response) => void held.push(response));
    const dispatcher = makeDispatcher((await startProxy(t, server.port)).url);
    t.after(() => dispatcher.destroy());
    const hub = await hubFor(t, { time, dispatcher, cache: false, retry: false, limits: ONE_A_SECOND_QUEUED });
    const first = hub.request(server.origin);
    await until(() => held.length === 1);
    const second = hub.request(server.origin);
    await until(() => hub.snapshot().waiting === 1);
    await time.advance(2000);
    assert.equal(hub.snapshot().waiting, 1);
    held[0]?.end();
    await (await first).body.text();
    await time.advance(999);
    assert.equal(hub.snapshot().waiting, 1);
    await time.advance(1);
    await until(() => held.length === 2);
    held[1]?.end();
    await (await second).body.text();
  });

test("a request whose new connection is reset before the response counts from the reset", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response, number) => {
    if (number === 1) request.socket.resetAndDestroy();
    else response.end("ok");
  });
  const limits = { defaults: { metadata: { rates: "4/SECOND", guard_ms: 0, max_delay_ms: 600, shape: "smooth" } } };
  const hub = await hubFor(t, { time, cache: false, retry: false, limits } as TestHubOptions);
  await assert.rejects(hub.fetch(server.origin));
  await until(() => hub.snapshot().inFlight === 0);
  const second = hub.fetch(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(499);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(await (await settles(second)).text(), "ok");
});

for (const { bound, call, max_delay_ms } of [
  { bound: "maxWaitMs", call: { maxWaitMs: 1500 }, max_delay_ms: 0 },
  { bound: "max_delay_ms", call: {}, max_delay_ms: 1500 },
  { bound: "maxBreakerWaitMs", call: { maxWaitMs: 60_000, maxBreakerWaitMs: 1500 }, max_delay_ms: 0 },
])
  test(`a trial call that a new cooldown sends back to the queue keeps its ${bound}`, async t => {
    const time = new FakeTime();
    const server = await serve(t, (_, response) => response.writeHead(429, { "retry-after": "1" }).end());
    const breakers = { defaults: { half_open: { jitter_ms: 100 } } };
    const limits = { defaults: { metadata: { rates: "100/SECOND", max_delay_ms } } };
    const hub = await hubFor(t, { time, cache: false, retry: false, random: () => 0.5, breakers, limits });
    await (await hub.fetch(server.origin)).text();
    const waiting = assert.rejects(hub.fetch(server.origin, call), BreakerOpenError);
    await until(() => hub.snapshot().waiting === 1);
    await time.advance(1020);
    assert.equal(hub.snapshot().waiting, 0, "it waits for its jitter");
    hub.breakers.open("127.0.0.1", { seconds: 1 });
    await time.advance(40);
    await settles(waiting);
    assert.equal(server.requests.length, 1);
  });

test("a request over an open connection counts from when it was sent", async t => {
  const time = new FakeTime();
  const wire = new FakeWire(handler => handler.onRequestSent?.());
  const hub = await hubFor(t, { time, cache: false, dispatcher: wire, limits: ONE_A_SECOND_QUEUED });
  wire.emit("connect", new URL("http://example.org"), []);
  for (let number = 0; number < 2; number += 1) dispatchTo(hub, "http://example.org", new RecordingHandler());
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(999);
  assert.equal(wire.origins.length, 1);
  await time.advance(1);
  assert.equal(wire.origins.length, 2);
});

test("a request that is aborted right after dispatch is never queued", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { cache: false, limits: ONE_A_SECOND_QUEUED });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin)).text();
  const handler = dispatchTo(hub, server.origin, new RecordingHandler());
  const enough = new Error("enough");
  handler.controller.abort(enough);
  assert.deepEqual([handler.controller.aborted, handler.controller.reason], [true, enough]);
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(handler.lines, ["error enough"]);
  assert.equal(hub.snapshot().waiting, 0);
  assert.equal(only(events, "ratelimit.acquire").length, 1);
});

for (const callback of ["onBodySent", "onRequestSent", "onResponseStarted"] as const) {
  test(`a handler with only ${callback} is called`, async t => {
    const server = await serve(t, (request, response) => request.resume().on("end", () => response.end()));
    const hub = await hubFor(t);
    let calls = 0;
    const handler = Object.assign(new RecordingHandler(), {
      [callback]: () => {
        calls += 1;
      },
    });
    hub.dispatcher().dispatch({ origin: server.origin, path: "/", method: "POST", body: "text" }, handler);
    await handler.waitFor("end");
    assert.equal(calls, 1);
  });
}

test("an upgrade passes the connection to the caller, frees the slot and reports the status", async t => {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    t.after(() => socket.destroy());
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const hub = await hubFor(t, { limits: { global: { max_inflight: 1 } } });
  const events = recordEvents(hub);
  const { socket, headers } = await upgrade(`http://127.0.0.1:${port}`, {
    dispatcher: hub.dispatcher(),
    protocol: "echo",
  });
  t.after(() => socket.destroy());
  assert.equal(headers["upgrade"], "echo");
  socket.write("to and fro");
  const [chunk] = await once(socket, "data");
  assert.equal(String(chunk), "to and fro");
  const { calls, inFlight } = hub.snapshot();
  assert.deepEqual({ calls, inFlight }, { calls: 0, inFlight: 0 });
  assert.deepEqual(
    only(events, "http_request").map(({ status }) => status),
    [101],
  );
});

test("a queued request continues in the asynchronous context of its caller, and is dispatched in it", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const { makeWire } = await import("../wire/wire.ts");
  const wire = makeWire({ allowPrivate: true });
  t.after(() => wire.destroy());
  const dispatch = wire.dispatch.bind(wire);
  wire.dispatch = (options, handler) => {
    seen.push(context.getStore());
    return dispatch(options, handler);
  };
  const hub = await hubFor(t, {
    time,
    cache: false,
    dispatcher: wire,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 9000 } } },
  });
  const calls = ["a", "b", "c"].map(name =>
    context.run(name, async () => {
      await (await hub.fetch(server.origin)).text();
      return context.getStore();
    }),
  );
  for (const waiting of [2, 1]) {
    await until(() => hub.snapshot().waiting === waiting && hub.snapshot().inFlight === 0);
    await time.advance(1000);
  }
  assert.deepEqual(await Promise.all(calls), ["a", "b", "c"]);
  assert.deepEqual(seen, ["a", "b", "c"]);
});

test("a request with a body counts as written when its first chunk has left, however late that is", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => request.resume().on("end", () => response.end("ok")));
  const hub = await hubFor(t, { cache: false, retry: false, time, limits: ONE_A_SECOND_QUEUED });
  // Opens the connection, so that the upload is not the first request over it.
  await (await hub.fetch(server.origin)).text();
  await time.advance(1000);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const upload = hub.fetch(server.origin, { method: "POST", body: readable, duplex: "half" });
  await until(() => hub.snapshot().inFlight === 1);
  const next = hub.fetch(server.origin, { maxWaitMs: 60_000 });
  await time.advance(3000);
  assert.deepEqual([server.requests.length, hub.snapshot().waiting], [1, 1], "the headers of the upload have not left");

  const writer = writable.getWriter();
  await writer.write(Buffer.from("late"));
  await until(() => server.requests.length === 2);
  await time.advance(999);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(await (await settles(next)).text(), "ok");
  await writer.close();
  assert.equal(await (await settles(upload)).text(), "ok");
});
