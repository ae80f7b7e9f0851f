import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import net, { type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { hubFor, settles, until } from "../../../test/http/kit.ts";
import { FakeTime } from "../../testing/fake-time.ts";

/** What the server does with a connection; `/plain` and everything else is a normal response. */
async function startServer(t: TestContext): Promise<{ readonly port: number }> {
  const server = http.createServer((request, response) => {
    const { socket, url } = request;
    if (url === "/reset") socket.resetAndDestroy();
    else if (url === "/cut") response.writeHead(200, { "content-length": 10 }).write("part", () => socket.destroy());
    else if (url === "/not-http") socket.end("no HTTP at all\r\n\r\n");
    else if (url === "/empty") response.writeHead(204).end();
    else if (url === "/hints") {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.end("after hints");
    } else if (url === "/trailers") {
      response.writeHead(200, { trailer: "x-sum" }).write("body");
      response.addTrailers({ "x-sum": "1" });
      response.end();
    } else if (url === "/early") response.end("answered before the body");
    else if (url === "/silent") request.resume();
    else if (url === "/stalled") response.writeHead(200, { "content-length": 10 }).write("part");
    else if (url === "/close") response.writeHead(200, { connection: "close" }).end("closed");
    else request.resume().on("end", () => response.end("plain"));
  });
  server.on("upgrade", (_, socket) => {
    socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port };
}

interface Scenario {
  readonly options?: RequestOptions;
  /** Sends the request. @default `request.end()` */
  readonly run?: (request: ClientRequest) => unknown;
  /** Reads the response. @default to its end */
  readonly read?: (response: IncomingMessage, request: ClientRequest) => unknown;
  readonly listens?: readonly string[];
  /** It ends before it is sent, so in the queue it has no socket. */
  readonly endsInQueue?: true;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a plain GET": {},
  "a HEAD": { options: { method: "HEAD" } },
  "a 204": { options: { path: "/empty" } },
  "early hints": { options: { path: "/hints" } },
  trailers: { options: { path: "/trailers" } },
  "connection: close": { options: { path: "/close" } },
  "a request without an agent": { options: { agent: false } },
  "a connection of the client": { options: { createConnection: net.connect as never } },
  "a body that comes late": {
    options: { method: "POST" },
    run: request => {
      request.write("first");
      setImmediate(() => setImmediate(() => request.end("last")));
    },
  },
  "headers that are flushed before the body": {
    options: { method: "POST" },
    run: request => {
      request.flushHeaders();
      request.once("socket", () => setImmediate(() => request.end("body")));
    },
  },
  "Expect: 100-continue": {
    options: { method: "POST", headers: { expect: "100-continue" } },
    run: request => {
      request.flushHeaders();
      request.once("continue", () => request.end("body"));
    },
  },
  "a response before the body has ended": {
    options: { method: "POST", path: "/early" },
    run: request => {
      request.write("first");
      request.once("response", () => request.end("last"));
    },
  },
  "a reset": { options: { path: "/reset" } },
  "a body that breaks off": { options: { path: "/cut" } },
  "a response that is not HTTP": { options: { path: "/not-http" } },
  "a refused connection": { options: { port: 1 } },
  "a host name that does not exist": { options: { host: "does-not-exist.invalid" } },
  "an upgrade": { options: { headers: { connection: "upgrade", upgrade: "echo" } }, listens: ["upgrade"] },
  "an upgrade that the client does not handle": { options: { headers: { connection: "upgrade", upgrade: "echo" } } },
  "a request that is destroyed at once": { run: request => request.destroy() },
  "a request that is aborted at once": { run: request => request.abort(), endsInQueue: true },
  "a request that is destroyed with an error": { run: request => request.destroy(new Error("unwanted")) },
  "a request that is destroyed in the next tick": {
    endsInQueue: true,
    run: request => {
      request.end();
      process.nextTick(() => request.destroy());
    },
  },
  "a request that is destroyed with its socket": {
    run: request => {
      request.end();
      request.once("socket", () => request.destroy());
    },
  },
  "a request that is destroyed when it is written": {
    options: { path: "/silent" },
    run: request => {
      request.end();
      request.once("finish", () => request.destroy());
    },
  },
  "a request that is destroyed with its response": { read: (_, request) => request.destroy() },
  "a response that is destroyed": { options: { path: "/stalled" }, read: response => response.destroy() },
  "a response that is destroyed with an error": {
    options: { path: "/stalled" },
    read: response => response.destroy(new Error("unwanted")),
  },
  "a request that is destroyed in the body": {
    options: { path: "/stalled" },
    read: (response, request) => response.once("data", () => request.destroy()),
  },
  "a request that is destroyed after its end": {
    read: (response, request) => response.resume().once("end", () => request.destroy()),
  },
  "a signal that was aborted before": { options: { signal: AbortSignal.abort() } },
  "a time limit": {
    options: { path: "/silent" },
    run: request => {
      request.end();
      // From here on: on a busy machine a limit from the start may end before the connection is open.
      request.once("finish", () => request.setTimeout(20));
      request.once("timeout", () => request.destroy());
    },
  },
};

/** The events that a client sees, in their order. */
async function eventsOf(scenario: Scenario, options: RequestOptions): Promise<readonly string[]> {
  const events: string[] = [];
  const request = http.request(options);
  const closed = new Promise(resolve => request.once("close", resolve));
  let ended: Promise<unknown> = closed;
  const note = (source: string, emitter: NodeJS.EventEmitter, names: readonly string[]) => {
    for (const name of names)
      emitter.on(name, value => {
        const { code, message } = value instanceof Error ? (value as NodeJS.ErrnoException) : {};
        events.push(`${source} ${name}${message === undefined ? "" : ` ${code ?? ""} ${message}`}`);
      });
  };
  note("request", request, ["information", "continue", "timeout", "abort", "error", "finish", "close"]);
  request.once("socket", () => events.push("request socket"));
  for (const name of scenario.listens ?? [])
    request.once(name, (response: IncomingMessage, socket: Socket) => {
      events.push(`request ${name} ${response.statusCode}`);
      socket.destroy();
    });
  request.once("response", response => {
    events.push(`request response ${response.statusCode}`);
    note("response", response, ["end", "aborted", "error", "close"]);
    ended = Promise.all([closed, new Promise(resolve => response.once("close", resolve))]);
    if (scenario.read !== undefined) scenario.read(response, request);
    else response.resume();
  });
  if (scenario.run === undefined) request.end();
  else scenario.run(request);
  await closed;
  await ended;
  const { destroyed, aborted, reusedSocket, writableEnded, writableFinished } = request;
  return [...events, JSON.stringify({ destroyed, aborted, reusedSocket, writableEnded, writableFinished })];
}

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test(`with an installed hub a client of node:http sees the same as without: ${name}`, async t => {
    const { port } = await startServer(t);
    const agent = new http.Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const send = () => eventsOf(scenario, { host: "127.0.0.1", port, agent, ...scenario.options });
    const without = await send();
    agent.destroy();
    const hub = await hubFor(t, { cache: false });
    t.after(hub.install({}));
    assert.deepEqual(await settles(send()), without);
    await until(() => hub.snapshot().calls === 0 && hub.snapshot().inFlight === 0);
  });

  test(`a client of node:http whose request waits in the queue sees the same: ${name}`, async t => {
    const { port } = await startServer(t);
    const agent = new http.Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const send = () => eventsOf(scenario, { host: "127.0.0.1", port, agent, ...scenario.options });
    const without = await send();
    agent.destroy();
    const time = new FakeTime();
    const limits = { global: { max_inflight: 1 } };
    const hub = await hubFor(t, { time, cache: false, limits });
    const held = await hub.request(`http://127.0.0.1:${port}/stalled`);
    t.after(hub.install({}));
    const seen = send();
    for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve));
    held.body.on("error", () => undefined).destroy();
    const compared = (events: readonly string[]) =>
      scenario.endsInQueue ? events.filter(event => event !== "request socket").toSorted() : events;
    assert.deepEqual(compared(await settles(seen)), compared(without));
    await until(() => hub.snapshot().calls === 0 && hub.snapshot().inFlight === 0);
  });
}

/** A request with a connection of its own, which waits for a slot while that connection ends. */
async function endWhileQueued(t: TestContext, endConnection: (socket: Socket) => void) {
  const accepted: Socket[] = [];
  const server = http.createServer((request, response) => {
    if (request.url !== "/held") response.end("ok");
  });
  server.on("connection", socket => accepted.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const hub = await hubFor(t, { cache: false, limits: { global: { max_inflight: 1 } } });
  t.after(hub.install({}));
  const abort = new AbortController();
  const held = hub.request(`http://127.0.0.1:${port}/held`, { signal: abort.signal }).catch(() => undefined);
  await until(() => accepted.length === 1);
  const request = http.get({ host: "127.0.0.1", port, createConnection: net.connect as never });
  const failed = settles(once(request, "error"));
  await until(() => accepted.length === 2);
  assert.equal(hub.snapshot().waiting, 1);
  endConnection(accepted[1] as Socket);
  for (let turn = 0; turn < 50; turn += 1) await new Promise(resolve => setImmediate(resolve));
  abort.abort();
  await held;
  return { hub, failed };
}

for (const [name, endConnection] of Object.entries({
  closed: (socket: Socket) => socket.end(),
  reset: (socket: Socket) => socket.resetAndDestroy(),
})) {
  test(`a connection of the client that is ${name} while its request is queued fails the request, and its slot is free`, async t => {
    const { hub, failed } = await endWhileQueued(t, endConnection);
    const [error] = await failed;
    assert.equal(error.code, "ECONNRESET");
    await until(() => hub.snapshot().calls === 0);
    assert.equal(hub.snapshot().inFlight, 0);
  });
}

test("a request whose signal was aborted before does not wait in the queue", async t => {
  const { port } = await startServer(t);
  const hub = await hubFor(t, { time: new FakeTime(), cache: false, limits: { global: { max_inflight: 1 } } });
  const held = await hub.request(`http://127.0.0.1:${port}/stalled`);
  t.after(hub.install({}));
  const request = http.get({ host: "127.0.0.1", port, signal: AbortSignal.abort() });
  const [error] = await settles(once(request, "error"));
  assert.equal(error.name, "AbortError");
  assert.equal(hub.snapshot().waiting, 0);
  held.body.on("error", () => undefined).destroy();
});

test("a request over a socket of this machine is not limited, also with a connection of the client", {
  skip: process.platform === "win32",
}, async t => {
  const socketPath = join(tmpdir(), `docstokg-own-${process.pid}.sock`);
  const server = http.createServer((_, response) => response.end("local")).listen(socketPath);
  await once(server, "listening");
  t.after(() => server.close());
  const limits = { defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 0 } } };
  const hub = await hubFor(t, { time: new FakeTime(), cache: false, limits });
  t.after(hub.install({}));
  for (let call = 0; call < 3; call += 1) {
    const request = http.get({ socketPath, createConnection: () => net.connect(socketPath) });
    const [response] = await once(request, "response");
    assert.equal(await text(response), "local");
  }
});

test("a request that is destroyed while it waits in its agent frees its slot, and the others are sent", async t => {
  const { port } = await startServer(t);
  const hub = await hubFor(t, { cache: false });
  t.after(hub.install({}));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const get = (path: string) => http.get({ host: "127.0.0.1", port, agent, path });
  const stalled = get("/stalled");
  const [held] = await settles(once(stalled, "response"));
  const [dropped, last] = [get("/plain").on("error", () => undefined), get("/plain")];
  assert.equal(hub.snapshot().inFlight, 3);
  dropped.destroy();
  assert.equal(hub.snapshot().inFlight, 2);
  const answered = once(last, "response");
  held.on("error", () => undefined).destroy();
  assert.equal(await text((await settles(answered))[0]), "plain");
  await until(() => hub.snapshot().calls === 0 && hub.snapshot().inFlight === 0);
});

test("a request that is queued when the hub is uninstalled is still sent when its turn comes", async t => {
  const { port } = await startServer(t);
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 600_000 } } };
  const hub = await hubFor(t, { time, cache: false, limits });
  const uninstall = hub.install({});
  const agent = new http.Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const get = async () => {
    const [response] = await settles(once(http.get({ host: "127.0.0.1", port, agent }), "response"));
    return text(response);
  };
  assert.equal(await get(), "plain");
  const queued = get();
  await until(() => hub.snapshot().waiting === 1);
  uninstall();
  await time.advance(1000);
  assert.equal(await queued, "plain");
  await until(() => hub.snapshot().calls === 0 && hub.snapshot().inFlight === 0);
});

/** Wraps the methods that a hub replaces, as a tracer does, and counts their calls. */
function trace(t: TestContext) {
  const agent = http.Agent.prototype as unknown as Record<"addRequest", (...rest: unknown[]) => void>;
  const request = http.ClientRequest.prototype as unknown as Record<"onSocket", (...rest: unknown[]) => void>;
  const { addRequest } = agent;
  const { onSocket } = request;
  const calls = { addRequest: 0, onSocket: 0 };
  agent.addRequest = function (...rest) {
    calls.addRequest += 1;
    addRequest.apply(this, rest);
  };
  request.onSocket = function (...rest) {
    calls.onSocket += 1;
    onSocket.apply(this, rest);
  };
  t.after(() => {
    agent.addRequest = addRequest;
    request.onSocket = onSocket;
  });
  return calls;
}

test("the methods that a tracer has wrapped stay wrapped when hubs are installed and uninstalled", async t => {
  const { port } = await startServer(t);
  const hubs = [await hubFor(t, { cache: false }), await hubFor(t, { cache: false })] as const;
  const seen: string[] = [];
  for (const [index, hub] of hubs.entries())
    hub.listen(({ event_type }) => {
      if (event_type === "http_request") seen.push(`hub ${index}`);
    });
  const get = async () => {
    const [response] = await settles(once(http.get({ host: "127.0.0.1", port, agent: false }), "response"));
    assert.equal(await text(response), "plain");
  };
  const before = trace(t);
  const uninstallFirst = hubs[0].install({});
  const between = trace(t);
  const uninstallSecond = hubs[1].install({});
  await get();
  assert.deepEqual(
    [before, between],
    [
      { addRequest: 1, onSocket: 1 },
      { addRequest: 1, onSocket: 1 },
    ],
  );
  uninstallSecond();
  await get();
  uninstallFirst();
  await get();
  const uninstallAgain = hubs[0].install({});
  await get();
  uninstallAgain();
  await get();
  assert.deepEqual(
    [before, between],
    [
      { addRequest: 5, onSocket: 5 },
      { addRequest: 5, onSocket: 5 },
    ],
  );
  await until(() => seen.length === 3);
  assert.deepEqual(seen, ["hub 1", "hub 0", "hub 0"]);
});
