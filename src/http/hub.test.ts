import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { upgrade } from "undici";
import { assertNothingLeft, hubFor, only, recordEvents, serve, settles, until } from "../../test/http/kit.ts";
import { exampleAt, silentTlsServer } from "../../test/http/tls-servers.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { ConfigError } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { createHub } from "./create-hub.ts";

test("hub.fetch returns Node's own Response", async t => {
  const server = await serve(t, (_, response) => response.setHeader("x-a", "b").end("hello"));
  const hub = await hubFor(t);
  const response = await hub.fetch(`${server.origin}/x?y=1`);
  assert.ok(response instanceof Response);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("x-a"), "b");
  assert.equal(await response.text(), "hello");
  assert.equal(server.requests[0]?.url, "/x?y=1");
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual({ calls, inFlight, waiting }, { calls: 0, inFlight: 0, waiting: 0 });
});

test("createHub closes its store when another option is invalid", async () => {
  const folder = temporaryFolder("invalid-option");
  const invalid = [{ cache: "none" as never }, { network: { connectTo: ["x"] } }, { retry: { attempts: 0 } }];
  for (const [index, options] of invalid.entries()) {
    const file = join(folder, `${index}.db`);
    await assert.rejects(createHub({ env: {}, store: `sqlite:${file}`, ...options }), RangeError);
    // SQLite deletes the write-ahead log when the last connection is closed.
    assert.deepEqual([existsSync(file), existsSync(`${file}-wal`)], [true, false]);
  }
});

test("hub.request returns what undici.request returns", async t => {
  const server = await serve(t, (_, response) => response.end("hello"));
  const hub = await hubFor(t);
  const { statusCode, body } = await hub.request(`${server.origin}/x`, { query: { a: "1" } });
  assert.equal(statusCode, 200);
  assert.equal(await body.text(), "hello");
  assert.equal(server.requests[0]?.url, "/x?a=1");
});

test("one http_request event describes the call, without the URL", async t => {
  const server = await serve(t, (_, response) => response.end("hello"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  await (await hub.fetch(`${server.origin}/x?api_key=secret`)).text();
  const [event, ...more] = only(events, "http_request");
  assert.equal(more.length, 0);
  assert.equal(event?.status, 200);
  assert.equal(event?.attempts, 1);
  assert.equal(event?.breaker_recorded, "success");
  assert.ok(!JSON.stringify(events).includes("secret"));
});

test("hub.fetch refuses a value that is no URL with the error of fetch", async t => {
  const hub = await hubFor(t);
  for (const input of [null, undefined, 5, {}, "/path", ""]) {
    const { message } = await fetch(input as string).catch(error => error);
    await assert.rejects(hub.fetch(input as string), { name: "TypeError", message });
  }
  assertNothingLeft(hub);
});

test("hub.fetch accepts no options, null, a Request and a FormData", async t => {
  const bodies: string[] = [];
  const server = await serve(t, (request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", chunk => {
      body += chunk;
    });
    request.on("end", () => {
      bodies.push(body);
      response.end("ok");
    });
  });
  const hub = await hubFor(t, { cache: false });
  const form = new FormData();
  form.set("field", "value");
  const post = new Request(server.origin, { method: "POST", body: "text" });
  const answers = [
    await hub.fetch(server.origin),
    await hub.fetch(new URL(server.origin), null),
    await hub.fetch(post),
    await hub.fetch(server.origin, { method: "POST", body: form }),
  ];
  for (const answer of answers) assert.equal(await answer.text(), "ok");
  assert.deepEqual(bodies.slice(0, 3), ["", "", "text"]);
  assert.match(bodies[3] ?? "", /name="field"\r\n\r\nvalue/);
});

test("hub.fetch rejects with the hub's own refusals directly, and with a TypeError for a network failure", async t => {
  const server = await serve(t, request => request.socket.resetAndDestroy());
  const hub = await hubFor(t, { retry: false });
  await assert.rejects(hub.fetch(server.origin, { maxWaitMs: -1 }), RangeError);
  await assert.rejects(
    hub.fetch(server.origin, { weight: 5000 }),
    /weight 5000 is larger than the rate limit 1000\/SECOND/,
  );
  await assert.rejects(hub.fetch(server.origin), { name: "TypeError", message: "fetch failed" });
});

test("a request over a new connection counts as being written until its response begins, or for 5 s", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => (request.url === "/silent" ? undefined : response.end("ok")));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 10_000 } } },
  });
  const silent = hub.request(`${server.origin}/silent`).catch(() => undefined);
  await until(() => server.requests.length === 1);
  const next = hub.request(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(5999);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(hub.snapshot().waiting, 0);
  assert.equal((await next).statusCode, 200);
  await hub.destroy();
  await silent;
});

test("a request of the hub over an open connection counts from when it was sent", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => (request.url === "/silent" ? undefined : response.end("ok")));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "2/SECOND", guard_ms: 0, max_delay_ms: 5000 } } },
  });
  await (await hub.request(server.origin)).body.text();
  // undici reuses a connection only in the next turn of the event loop.
  await new Promise(resolve => setImmediate(resolve));
  const silent = hub.request(`${server.origin}/silent`).catch(() => undefined);
  await until(() => server.requests.length === 2);
  assert.equal(server.connections, 1);
  const others = [hub.request(server.origin), hub.request(server.origin)];
  await until(() => hub.snapshot().waiting === 2);
  await time.advance(999);
  assert.equal(hub.snapshot().waiting, 2);
  await time.advance(1);
  assert.equal(hub.snapshot().waiting, 0, "both windows have passed, and no request is queued");
  await Promise.all(others);
  await hub.destroy();
  await silent;
});

test("destroy does not wait for connections that are being opened", async t => {
  const server = await silentTlsServer(t);
  const hub = await hubFor(t, { network: exampleAt(server.port) });
  const refused = assert.rejects(hub.request("https://example.org/"), /power cut/);
  await until(() => server.sockets.length === 1);
  await settles(hub.destroy(new Error("power cut")));
  await refused;
  assertNothingLeft(hub);
});

test("close does not wait for the connection of a request that was aborted", async t => {
  const server = await silentTlsServer(t);
  const hub = await hubFor(t, { network: { ...exampleAt(server.port), connectTimeoutMs: 0 } });
  const controller = new AbortController();
  const refused = assert.rejects(hub.request("https://example.org/", { signal: controller.signal }), /enough/);
  await until(() => server.sockets.length === 1);
  controller.abort(new Error("enough"));
  await refused;
  await settles(hub.close());
  assertNothingLeft(hub);
});

test("a connection that was upgraded stays open when the hub is closed", async t => {
  const server = createServer().listen(0, "127.0.0.1");
  server.on("upgrade", (_, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n");
    socket.pipe(socket);
  });
  await once(server, "listening");
  t.after(() => server.close());
  const hub = await hubFor(t);
  const { port } = server.address() as AddressInfo;
  const { socket } = await upgrade(`http://127.0.0.1:${port}/`, { dispatcher: hub.dispatcher(), protocol: "echo" });
  await settles(hub.close());
  socket.end("still open");
  assert.equal(await text(socket), "still open");
});

test("destroy after close does not wait for a connection that is being opened", async t => {
  const silent = createNetServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const sockets: Socket[] = [];
  silent.on("connection", socket => {
    sockets.push(socket.on("error", () => undefined));
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const hub = await hubFor(t, { network: { connectTimeoutMs: 0 } });
  const controller = new AbortController();
  const call = hub.request(`https://127.0.0.1:${port}/`, { signal: controller.signal });
  await until(() => sockets.length === 1);
  controller.abort();
  await assert.rejects(call);
  const closed = hub.close();
  await hub.destroy();
  for (const socket of sockets) socket.destroy();
  await closed;
});

test("requests inside hub.with get its options, and inner options win over outer ones", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  t.after(hub.install());
  const sdk = async () => {
    await new Promise(resolve => setImmediate(resolve));
    return (await fetch(server.origin)).text();
  };
  await hub.with({ role: "landing", resolver: "one" }, async () => {
    await sdk();
    await hub.with({ role: "artifact" }, sdk);
    await (await hub.fetch(server.origin, { role: "metadata" })).text();
  });
  await sdk();
  assert.deepEqual(
    only(events, "http_request").map(({ role }) => role),
    ["landing", "artifact", "metadata", "metadata"],
  );
  assert.deepEqual(
    only(events, "breaker_before_call").map(({ resolver }) => resolver),
    ["one", "one", "one", undefined],
  );
});

test("close waits for queued requests and for bodies, refuses new requests, and then resolves", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 9000 } } },
  });
  const answers = Array.from({ length: 3 }, async () => (await hub.fetch(server.origin)).text());
  await until(() => hub.snapshot().waiting === 2);
  let isClosed = false;
  const closed = hub.close().then(() => {
    isClosed = true;
  });
  await assert.rejects(hub.request(server.origin), { code: "DOCSTOKG_CLOSED" });
  for (const sent of [2, 3]) {
    await until(() => hub.snapshot().inFlight === 0);
    assert.equal(isClosed, false);
    await time.advance(1000);
    await until(() => server.requests.length === sent);
  }
  assert.deepEqual(await Promise.all(answers), ["ok", "ok", "ok"]);
  await closed;
  assert.equal(time.armedTimers, 0);
  await hub.close();
});

test("destroy fails queued requests and requests in flight, and leaves nothing behind", async t => {
  const time = new FakeTime();
  const server = await serve(t, () => undefined);
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 9000 } } },
  });
  const answers = Promise.allSettled([hub.request(server.origin), hub.request(server.origin)]);
  await until(() => server.requests.length === 1);
  await hub.destroy(new Error("power cut"));
  for (const { reason } of (await answers) as PromiseRejectedResult[]) assert.match(reason.message, /power cut/);
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual(
    { calls, inFlight, waiting, timers: time.armedTimers },
    { calls: 0, inFlight: 0, waiting: 0, timers: 0 },
  );
});

test("requests that destroy ends, and those after it, fail with a HubClosedError, also by fetch", async t => {
  const server = await serve(t, () => undefined);
  const hub = await hubFor(t, { limits: { defaults: { metadata: { rates: "1/HOUR", max_delay_ms: 9e9 } } } });
  const calls = [hub.fetch(server.origin), hub.request(server.origin)];
  const ended = Promise.allSettled(calls);
  await until(() => server.requests.length === 1);
  await hub.destroy();
  const after = await Promise.allSettled([hub.fetch(server.origin)]);
  for (const { reason } of [...(await ended), ...after] as PromiseRejectedResult[])
    assert.deepEqual([reason.name, reason.code], ["HubClosedError", "DOCSTOKG_CLOSED"]);
});

test("a reload changes the limits of queued requests, and an invalid one changes nothing", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { hosts: { "127.0.0.1": { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 120_000 } } } },
  });
  assert.equal(hub.policyFor("127.0.0.1").rates, "1/MINUTE");
  await (await hub.fetch(server.origin)).text();
  const waiting = hub.fetch(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await assert.rejects(
    hub.reload({ ratelimits: { hosts: { "127.0.0.1": { metadata: { rates: "fast" } } } } }),
    ConfigError,
  );
  assert.equal(hub.policyFor("127.0.0.1").rates, "1/MINUTE");
  const rates = "1/SECOND";
  await hub.reload({
    ratelimits: { extends: "none", hosts: { "127.0.0.1": { metadata: { rates, guard_ms: 0, max_delay_ms: 9000 } } } },
    breakers: { extends: "none" },
  });
  await time.advance(1000);
  assert.equal(await (await waiting).text(), "ok");
  assert.equal(hub.policyFor("127.0.0.1").rates, "1/SECOND");
});

test("a call with service uses the limits of that group, whatever the host", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    cache: false,
    limits: {
      groups: {
        mirror: { members: ["mirror.example"], metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 0 } },
      },
    },
  });
  await (await hub.request(server.origin, { service: "mirror" })).body.text();
  await assert.rejects(hub.request(`http://localhost:${server.port}`, { service: "mirror" }), /1\/MINUTE of/);
  await (await hub.request(server.origin)).body.text();
  await assert.rejects(hub.request(server.origin, { service: "nobody" }), RangeError);
});
