import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https, { type AgentOptions } from "node:https";
import net, { type AddressInfo, type LookupFunction, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { hubFor, only, recordEvents, serve, type TestHubOptions, tlsFixture, until } from "../../../test/http/kit.ts";
import { LateTimers } from "../../../test/http/late-timers.ts";
import { BreakerOpenError, PrivateAddressError, RateLimitExceeded, RedirectError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { createHub } from "../create-hub.ts";
import type { Hub } from "../hub.ts";

const rates = (text: string, more = {}) => ({
  defaults: { metadata: { rates: text, guard_ms: 0, max_delay_ms: 600_000, ...more } },
});

async function hubOnFakeTime(t: TestContext, options: TestHubOptions = {}) {
  const time = new FakeTime();
  return { time, hub: await hubFor(t, { time, cache: false, ...options }) };
}

/** The response, or a rejection with the error of the request. */
async function responseOf(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = await once(request, "response");
  return response;
}

async function bodyOf(request: ClientRequest): Promise<string> {
  return text(await responseOf(request));
}

async function errorOf(request: ClientRequest): Promise<NodeJS.ErrnoException> {
  const closed = new Promise(resolve => request.once("close", resolve));
  const [error] = await once(request, "error");
  await closed;
  return error;
}

function assertNothingLeft(hub: Hub): void {
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual({ calls, inFlight, waiting }, { calls: 0, inFlight: 0, waiting: 0 });
}

/** How a client reaches the hub: with its agents, or because the hub is installed. */
const WAYS = {
  "hub.agents": (hub: Hub, t: TestContext) => {
    const agents = hub.agents();
    t.after(() => agents.http.destroy());
    return { agent: agents.http };
  },
  "hub.install": (hub: Hub, t: TestContext) => {
    t.after(hub.install({}));
    return {};
  },
  "hub.install, with an agent of the client": (hub: Hub, t: TestContext) => {
    t.after(hub.install({}));
    const agent = new http.Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    return { agent };
  },
  "hub.install, with a connection of the client": (hub: Hub, t: TestContext) => {
    t.after(hub.install({}));
    return { createConnection: net.connect as never };
  },
};

for (const [way, optionsFor] of Object.entries(WAYS)) {
  test(`${way}: requests wait for the rate limit, and reach the server in order`, async t => {
    const server = await serve(t, (request, response) => response.end(request.url));
    const { time, hub } = await hubOnFakeTime(t, { limits: rates("1/SECOND") });
    const options = optionsFor(hub, t);
    const bodies = [1, 2, 3].map(number => bodyOf(http.get(`${server.origin}/${number}`, options)));
    for (const sent of [1, 2, 3]) {
      await until(() => server.requests.length === sent);
      await bodies[sent - 1];
      await time.advance(999);
      assert.equal(server.requests.length, sent);
      await time.advance(1);
    }
    assert.deepEqual(await Promise.all(bodies), ["/1", "/2", "/3"]);
    await until(() => hub.snapshot().calls === 0);
    assertNothingLeft(hub);
  });

  test(`${way}: a slot is held until the body ends`, async t => {
    const server = await serve(t, (_, response) => response.end("x".repeat(500_000)));
    const { hub } = await hubOnFakeTime(t, { limits: rates("1000/SECOND", { max_concurrent: 1 }) });
    const options = optionsFor(hub, t);
    const first = await responseOf(http.get(server.origin, options));
    const second = bodyOf(http.get(server.origin, options));
    assert.deepEqual([hub.snapshot().inFlight, hub.snapshot().waiting], [1, 1]);
    assert.equal((await text(first)).length, 500_000);
    assert.equal((await second).length, 500_000);
    await until(() => hub.snapshot().calls === 0);
    assertNothingLeft(hub);
  });

  test(`${way}: a refusal is the error of the request, with host and time, and nothing is sent`, async t => {
    const server = await serve(t, (_, response) => response.end());
    const { hub } = await hubOnFakeTime(t, { limits: rates("1/MINUTE"), defaults: { maxWaitMs: 0 } });
    const options = optionsFor(hub, t);
    await bodyOf(http.get(server.origin, options));
    const error = await errorOf(http.get(server.origin, options));
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.code, "DOCSTOKG_RATE_LIMITED");
    assert.equal(error.host, "127.0.0.1");
    assert.ok(error.retryAfterMs !== undefined && error.retryAfterMs > 0 && error.retryAfterMs <= 60_000);
    assert.equal(server.requests.length, 1);
    await until(() => hub.snapshot().calls === 0);
    assertNothingLeft(hub);
  });
}

test("requests over one connection follow each other on it when a host allows one at a time", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const { hub } = await hubOnFakeTime(t, { limits: rates("1000/SECOND", { max_concurrent: 1 }) });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  await Promise.all(Array.from({ length: 10 }, () => bodyOf(http.get(server.origin, { agent }))));
  assert.equal(server.connections, 1);
});

test("https requests go through the hub, with the agents and when it is installed", async t => {
  const { key, cert } = tlsFixture();
  const server = https.createServer({ key, cert }, (_, response) => response.end("secure"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const { hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  const { https: agent } = hub.agents({ role: "artifact" });
  t.after(() => agent.destroy());
  const options = { port, host: "127.0.0.1", servername: "example.org", ca: cert };
  assert.equal(await bodyOf(https.get({ ...options, agent })), "secure");
  t.after(hub.install({}));
  assert.equal(await bodyOf(https.get(options)), "secure");
  await until(() => only(events, "http_request").length === 2);
  assert.deepEqual(
    only(events, "http_request").map(({ host, role, status, attempts }) => ({ host, role, status, attempts })),
    [
      { host: "127.0.0.1", role: "artifact", status: 200, attempts: 1 },
      { host: "127.0.0.1", role: "metadata", status: 200, attempts: 1 },
    ],
  );
});

test("ECONNREFUSED stays the error of the request, counts as a failure, and opens the circuit", async t => {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const { hub } = await hubOnFakeTime(t, { breakers: { defaults: { fail_max: 2 } } });
  const { http: agent } = hub.agents();
  const send = () => errorOf(http.get({ port, host: "127.0.0.1", agent }));
  for (let call = 0; call < 2; call += 1) assert.equal((await send()).code, "ECONNREFUSED");
  const refused = await send();
  assert.ok(refused instanceof BreakerOpenError);
  assert.match(refused.message, /^circuit open for 127\.0\.0\.1 \(metadata\): 2 consecutive failures/);
  assertNothingLeft(hub);
});

test("a 429 with Retry-After sets a cooldown, which the next request waits for", async t => {
  const server = await serve(t, (_, response, number) =>
    number === 1 ? response.writeHead(429, { "retry-after": "7" }).end() : response.end("ok"),
  );
  const { time, hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  const { http: agent } = hub.agents({ maxWaitMs: Number.POSITIVE_INFINITY });
  t.after(() => agent.destroy());
  await bodyOf(http.get(server.origin, { agent }));
  const second = bodyOf(http.get(server.origin, { agent }));
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(6_999);
  assert.equal(server.requests.length, 1);
  await time.advance(10_000);
  assert.equal(await second, "ok");
  await until(() => only(events, "http_request").length === 2);
  assert.deepEqual(
    only(events, "http_request").map(({ status, breaker_recorded }) => [status, breaker_recorded]),
    [
      [429, "failure"],
      [200, "success"],
    ],
  );
});

test("a response that breaks off is a failure, and one that the client drops is not", async t => {
  const server = await serve(t, (request, response) => {
    response.writeHead(200, { "content-length": "100000" });
    response.write("x".repeat(50_000));
    if (request.url === "/break") setImmediate(() => response.destroy());
  });
  const { hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const broken = await responseOf(http.get(`${server.origin}/break`, { agent }));
  await assert.rejects(text(broken), { code: "ECONNRESET" });
  for (const drop of [
    (request: ClientRequest) => request.destroy(),
    (_: ClientRequest, response: IncomingMessage) => response.destroy(),
    (_: ClientRequest, response: IncomingMessage) => response.destroy(new Error("enough")),
  ]) {
    const request = http.get(`${server.origin}/drop`, { agent });
    const response = await responseOf(request);
    for (const each of [request, response]) each.on("error", () => undefined);
    drop(request, response);
  }
  await until(() => only(events, "http_request").length === 4);
  assert.deepEqual(
    only(events, "http_request").map(({ breaker_recorded }) => breaker_recorded),
    ["failure", "success", "success", "success"],
  );
  assertNothingLeft(hub);
});

for (const abort of ["destroy", "signal", "abort"] as const) {
  test(`a request that is ended by ${abort} while it waits closes at once, and is never sent`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    const { time, hub } = await hubOnFakeTime(t, { limits: rates("1/MINUTE") });
    const { http: agent } = hub.agents();
    t.after(() => agent.destroy());
    await bodyOf(http.get(server.origin, { agent }));
    const controller = new AbortController();
    const request = http.get(server.origin, { agent, signal: controller.signal });
    const third = bodyOf(http.get(server.origin, { agent }));
    await until(() => hub.snapshot().waiting === 2);
    const closed = once(request, "close").catch(() => undefined);
    const failed = abort === "abort" ? undefined : errorOf(request);
    if (abort === "signal") controller.abort();
    else request[abort]();
    const error = await failed;
    if (abort !== "abort") assert.equal(error?.code, abort === "signal" ? "ABORT_ERR" : "ECONNRESET");
    await closed;
    assert.equal(hub.snapshot().waiting, 1);
    await time.advance(60_000);
    assert.equal(await third, "ok");
    assert.equal(server.requests.length, 2);
    assertNothingLeft(hub);
  });
}

test("a request that is ended while it connects gives its unit back", async t => {
  const { hub } = await hubOnFakeTime(t, { limits: rates("1/MINUTE", { max_delay_ms: 0 }) });
  const server = await serve(t, (_, response) => response.end("ok"));
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const request = http.get(server.origin, { agent });
  await once(request, "socket");
  const failed = errorOf(request);
  request.destroy();
  await failed;
  assertNothingLeft(hub);
  assert.equal(await bodyOf(http.get(server.origin, { agent })), "ok");
});

test("a request that is ended after it was written keeps its unit, and frees its slot", async t => {
  const server = await serve(t, () => undefined);
  const { hub } = await hubOnFakeTime(t, { limits: rates("1/MINUTE", { max_delay_ms: 0, max_concurrent: 1 }) });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const request = http.get(server.origin, { agent });
  await until(() => server.requests.length === 1);
  const failed = errorOf(request);
  request.destroy();
  await failed;
  assertNothingLeft(hub);
  assert.ok((await errorOf(http.get(server.origin, { agent }))) instanceof RateLimitExceeded);
});

test("a request whose new connection is reset before the response counts from the reset", async t => {
  const server = await serve(t, (request, response, number) => {
    if (number === 1) request.socket.resetAndDestroy();
    else response.end("ok");
  });
  const { time, hub } = await hubOnFakeTime(t, { limits: rates("4/SECOND", { max_delay_ms: 600, shape: "smooth" }) });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  assert.equal((await errorOf(http.get(server.origin, { agent }))).code, "ECONNRESET");
  const second = bodyOf(http.get(server.origin, { agent }));
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(499);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(await second, "ok");
});

for (const { bound, call, max_delay_ms } of [
  { bound: "maxWaitMs", call: { maxWaitMs: 1500 }, max_delay_ms: 0 },
  { bound: "max_delay_ms", call: { maxWaitMs: undefined, maxBreakerWaitMs: undefined }, max_delay_ms: 1500 },
])
  test(`a trial call that a new cooldown sends back to the queue keeps its ${bound}`, async t => {
    const server = await serve(t, (_, response) => response.writeHead(429, { "retry-after": "1" }).end());
    const breakers = { defaults: { half_open: { jitter_ms: 100 } } };
    const limits = { defaults: { metadata: { rates: "100/SECOND", max_delay_ms } } };
    const { time, hub } = await hubOnFakeTime(t, { random: () => 0.5, breakers, limits });
    const { http: agent } = hub.agents(call);
    t.after(() => agent.destroy());
    await bodyOf(http.get(server.origin, { agent }));
    const waiting = errorOf(http.get(server.origin, { agent }));
    await until(() => hub.snapshot().waiting === 1);
    await time.advance(1020);
    assert.equal(hub.snapshot().waiting, 0, "it waits for its jitter");
    hub.breakers.open("127.0.0.1", { seconds: 1 });
    await time.advance(40);
    assert.ok((await waiting) instanceof BreakerOpenError);
    assert.equal(server.requests.length, 1);
  });

test("a request with a body is stamped when its headers leave, however late that is", async t => {
  const server = await serve(t, (request, response) => request.resume().on("end", () => response.end("ok")));
  const { time, hub } = await hubOnFakeTime(t, { limits: rates("1/SECOND") });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  await bodyOf(http.get(server.origin, { agent }));
  await time.advance(1000);
  const upload = http.request(server.origin, { agent, method: "POST" });
  const uploaded = bodyOf(upload);
  await once(upload, "socket");
  const next = bodyOf(http.get(server.origin, { agent }));
  await time.advance(5000);
  assert.equal(server.requests.length, 1);
  upload.write("first");
  await until(() => server.requests.length === 2);
  await time.advance(999);
  assert.equal(server.requests.length, 2);
  await time.advance(1);
  await next;
  upload.end("last");
  assert.equal(await uploaded, "ok");
});

test("upgrade, CONNECT, Expect, HTTP/1.0 and a response without a listener work as without the hub", async t => {
  const server = http.createServer((request, response) => {
    if (request.url === "/old") {
      request.socket.end("HTTP/1.0 200 OK\r\n\r\nold");
      return;
    }
    request.resume().on("end", () => response.end("plain"));
  });
  server.on("upgrade", (_, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
    socket.pipe(socket);
  });
  server.on("connect", (_, socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const { hub } = await hubOnFakeTime(t);
  t.after(hub.install({}));
  const options = { port, host: "127.0.0.1", agent: new http.Agent() };

  const upgrading = http.get({ ...options, headers: { connection: "upgrade", upgrade: "echo" } });
  const [, socket] = (await once(upgrading, "upgrade")) as [IncomingMessage, net.Socket];
  socket.write("hello");
  assert.equal(String((await once(socket, "data"))[0]), "hello");
  socket.destroy();

  const tunnel = http.request({ ...options, method: "CONNECT", path: "example.org:443" }).end();
  const [connected] = (await once(tunnel, "connect")) as [IncomingMessage];
  assert.equal(connected.statusCode, 200);

  const expecting = http.request({ ...options, method: "POST", headers: { expect: "100-continue" } });
  expecting.flushHeaders();
  await once(expecting, "continue");
  expecting.end("body");
  assert.equal(await bodyOf(expecting), "plain");

  assert.equal(await bodyOf(http.get({ ...options, path: "/old" })), "old");

  const ignored = http.get(options);
  await once(ignored, "close");
  await until(() => hub.snapshot().calls === 0);
  assertNothingLeft(hub);
});

test("requests over a socket of this machine are not limited", { skip: process.platform === "win32" }, async t => {
  const path = join(tmpdir(), `docstokg-${process.pid}.sock`);
  const server = http.createServer((_, response) => response.end("local")).listen(path);
  await once(server, "listening");
  t.after(() => server.close());
  const { hub } = await hubOnFakeTime(t, { limits: rates("1/MINUTE", { max_delay_ms: 0 }) });
  t.after(hub.install({}));
  for (let call = 0; call < 3; call += 1)
    assert.equal(await bodyOf(http.get({ socketPath: path, path: "/", agent: false })), "local");
});

test("a request to a proxy uses the limits of the host in its URL", async t => {
  const proxy = await serve(t, (request, response) => response.end(request.url));
  const { hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  t.after(hub.install({}));
  const url = "http://api.example.org/works?x=1";
  assert.equal(await bodyOf(http.get({ port: proxy.port, host: "127.0.0.1", path: url, agent: false })), url);
  await until(() => only(events, "http_request").length === 1);
  assert.equal(only(events, "http_request")[0]?.host, "api.example.org");
});

test("the identification of the host is added, and removed from the redirect that the client follows", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url?.startsWith("/path"))
      response.writeHead(302, { location: "http://far.example/k3y-of-ours/x" }).end();
    else response.writeHead(302, { location: `http://far.example${request.url}` }).end();
  });
  const own = { query: { api_key: "{A_KEY}" }, headers: { "x-contact": "me" } };
  const identities = { hosts: { "127.0.0.1": own } };
  const hub = await createHub({ env: { A_KEY: "k3y-of-ours" }, policy: { identities } });
  t.after(() => hub.destroy());
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const response = await responseOf(http.get(`${server.origin}/search?q=1`, { agent }));
  response.resume();
  assert.equal(server.requests[0]?.url, "/search?q=1&api_key=k3y-of-ours");
  assert.equal(server.requests[0]?.headers["x-contact"], "me");
  assert.match(server.requests[0]?.headers["user-agent"] ?? "", /^docstokg\//);
  assert.equal(response.headers.location, "http://far.example/search?q=1");
  assert.ok(!response.rawHeaders.join().includes("k3y"));
  assert.ok((await errorOf(http.get(`${server.origin}/path`, { agent }))) instanceof RedirectError);
  const named = { agent, headers: { "user-agent": "mine/1" } };
  (await responseOf(http.get(`${server.origin}/search`, named))).resume();
  assert.equal(server.requests[2]?.headers["user-agent"], "mine/1");
});

test("a successful unsafe request removes the stored responses of its URL and of its Location", async t => {
  const server = await serve(t, (request, response) => {
    response.setHeader("cache-control", "max-age=600");
    if (request.method !== "GET")
      response.writeHead(request.url?.startsWith("/refused") ? 409 : 303, { location: "/list?key=1" });
    response.end(`${request.url}`);
  });
  const own = { query: { key: "{A_KEY}" } };
  const policy = { identities: { hosts: { "127.0.0.1": own } } };
  const hub = await createHub({ env: { A_KEY: "1" }, policy });
  t.after(() => hub.destroy());
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const statuses = async () => {
    const gets = ["/item", "/list", "/refused"].map(path => hub.fetch(`${server.origin}${path}`));
    return (await Promise.all(gets)).map(({ headers }) => headers.get("cache-status")?.split("; ")[1]);
  };
  const put = async (path: string) => {
    const response = await responseOf(http.request(`${server.origin}${path}`, { agent, method: "PUT" }).end("new"));
    response.resume();
    await once(response, "close");
  };
  assert.deepEqual(await statuses(), ["fwd=miss", "fwd=miss", "fwd=miss"]);
  await put("/refused");
  assert.deepEqual(await statuses(), ["hit", "hit", "hit"]);
  await put("/item");
  assert.deepEqual(await statuses(), ["fwd=miss", "fwd=miss", "hit"]);
});

test("a key that a reload has replaced is still removed from the redirect of the request that sent it", async t => {
  const arrived = Promise.withResolvers<() => void>();
  const server = await serve(t, (request, response) =>
    arrived.resolve(() => void response.writeHead(302, { location: `http://far.example${request.url}` }).end()),
  );
  const withKey = (name: string) => ({ identities: { hosts: { "127.0.0.1": { query: { api_key: `{${name}}` } } } } });
  const hub = await createHub({ env: { OLD_KEY: "first-k3y", NEW_KEY: "second-k3y" }, policy: withKey("OLD_KEY") });
  t.after(() => hub.destroy());
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const answered = responseOf(http.get(`${server.origin}/search?q=1`, { agent }));
  const answer = await arrived.promise;
  await hub.reload(withKey("NEW_KEY"));
  answer();
  const response = await answered;
  response.resume();
  assert.equal(server.requests[0]?.url, "/search?q=1&api_key=first-k3y");
  assert.equal(response.headers.location, "http://far.example/search?q=1");
});

test("a proxy gets no key of the host in the URL, because the connection to it is not encrypted", async t => {
  const proxy = await serve(t, (request, response) =>
    response.writeHead(302, { location: `${request.url}?api_key=k3y-of-ours` }).end(),
  );
  const own = { query: { api_key: "{A_KEY}" }, headers: { authorization: "Bearer {A_KEY}" } };
  const identities = { hosts: { "api.example.org": own } };
  const hub = await createHub({ env: { A_KEY: "k3y-of-ours" }, policy: { identities } });
  t.after(() => hub.destroy());
  t.after(hub.install());
  const path = "https://api.example.org/works";
  const response = await responseOf(http.get({ port: proxy.port, host: "127.0.0.1", path }));
  response.resume();
  assert.equal(proxy.requests[0]?.url, path);
  assert.equal(proxy.requests[0]?.headers.authorization, undefined);
  assert.match(proxy.requests[0]?.headers["user-agent"] ?? "", /^docstokg\//);
  assert.equal(response.headers.location, `${path}?api_key=k3y-of-ours`, "a key that the hub did not send is kept");
});

test("private addresses are refused where the hub refuses them, by address and by name", async t => {
  const server = await serve(t, (_, response) => response.end());
  const { hub } = await hubOnFakeTime(t, { network: { allowPrivate: false } });
  t.after(hub.install({}));
  assert.ok((await errorOf(http.get(server.origin))) instanceof PrivateAddressError);
  assert.ok((await errorOf(http.get(`http://localhost:${server.port}`))) instanceof PrivateAddressError);
  assert.equal(server.requests.length, 0);
});

test("private addresses are refused before the request is written, also on connections of the client", async t => {
  const received: Buffer[] = [];
  const server = net.createServer(socket => {
    socket.on("error", () => undefined);
    socket.on("data", data => {
      received.push(data);
      socket.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const { hub } = await hubOnFakeTime(t, { network: { allowPrivate: false } });
  const events = recordEvents(hub);
  t.after(hub.install({}));
  const lookup: LookupFunction = (_, options, callback) =>
    options.all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);
  const connected = net.connect(port, "127.0.0.1");
  await once(connected, "connect");
  const connecting = () => net.connect({ host: "public.example", port, lookup });
  const ways: Readonly<Record<string, http.RequestOptions>> = {
    "a connection of the client": { createConnection: net.connect as never, host: "localhost" },
    "another host than that of the URL": { createConnection: connecting },
    "a connection that is open already": { createConnection: () => connected },
    "a connection that is given later": { createConnection: (_, given) => void given?.(null, connecting()) },
    "no agent": { agent: false, host: "localhost" },
    "an agent with a lookup": { agent: new http.Agent({ lookup } as http.AgentOptions) },
    "an agent of the hub with a lookup": { agent: hub.agents({}, { lookup } as AgentOptions).http },
  };
  for (const [way, options] of Object.entries(ways)) {
    const request = http.request({ host: "public.example", port, method: "POST", ...options });
    const error = errorOf(request);
    request.end("body");
    assert.ok((await error) instanceof PrivateAddressError, way);
    assert.equal(request.socket?.destroyed ?? true, true, way);
  }
  await until(() => hub.snapshot().calls === 0);
  assert.equal(Buffer.concat(received).toString(), "");
  const connections = only(events, "http_attempt").map(({ connection }) => connection);
  assert.deepEqual(new Set(connections), new Set(["none"]), "nothing counts as sent");
});

test("an agent that opens connections itself may use a proxy in the private network", async t => {
  const proxy = await serve(t, (request, response) => response.end(`via proxy: ${request.url}`));
  const { hub } = await hubOnFakeTime(t, { network: { allowPrivate: false } });
  t.after(hub.install({}));
  class ProxyAgent extends http.Agent {
    override createConnection(): Socket {
      return net.connect(proxy.port, "127.0.0.1");
    }
  }
  assert.equal(await bodyOf(http.get("http://public.example/1", { agent: new ProxyAgent() })), "via proxy: /1");
});

test("an agent with Node's proxy settings may use a proxy in the private network", async t => {
  const proxy = await serve(t, (request, response) => response.end(`via proxy: ${request.url}`));
  const { hub } = await hubOnFakeTime(t, { network: { allowPrivate: false } });
  t.after(hub.install({}));
  const agent = new http.Agent({ proxyEnv: { HTTP_PROXY: proxy.origin } } as http.AgentOptions);
  t.after(() => agent.destroy());
  const [major = 0] = process.versions.node.split(".").map(Number);
  // Older versions ignore the setting.
  if (major < 24) return;
  const body = await bodyOf(http.get("http://public.example/1", { agent }));
  assert.equal(body, "via proxy: http://public.example/1");
});

test("a body that the client does not read is aborted after unreadBodyMs, and its slot is free", async t => {
  const server = await serve(t, (_, response) => response.end("x".repeat(2_000_000)));
  const { time, hub } = await hubOnFakeTime(t, { unreadBodyMs: 1000 });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const response = await responseOf(http.get(server.origin, { agent }));
  const failed = once(response, "error").catch(error => [error]);
  assert.equal(hub.snapshot().inFlight, 1);
  for (let step = 0; step < 3; step += 1) {
    await until(() => response.readableLength > 0);
    await time.advance(1000);
  }
  assert.equal((await failed)[0].code, "DOCSTOKG_BODY_UNREAD");
  assertNothingLeft(hub);
});

test("a body that arrived at once may be read slowly, and is aborted once the client stops", async t => {
  const server = await serve(t, (_, response) => response.end("x".repeat(10_000)));
  const { time, hub } = await hubOnFakeTime(t, { unreadBodyMs: 1000 });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const response = await responseOf(http.get(server.origin, { agent }));
  const failed = once(response, "error").catch(error => [error]);
  await until(() => response.readableLength === 10_000);
  for (let step = 0; step < 9; step += 1) {
    await time.advance(900);
    assert.equal(response.errored, null, `after ${step} reads`);
    assert.equal(response.read(1000)?.length, 1000);
  }
  await time.advance(2000);
  assert.equal((await failed)[0].code, "DOCSTOKG_BODY_UNREAD");
  assertNothingLeft(hub);
});

test("a deadline ends a request in the queue and one that the server does not answer", async t => {
  const server = await serve(t, () => undefined);
  const { time, hub } = await hubOnFakeTime(t);
  const { http: agent } = hub.agents({ deadlineMs: 5000 });
  t.after(() => agent.destroy());
  const failed = errorOf(http.get(server.origin, { agent }));
  await until(() => server.requests.length === 1);
  await time.advance(5000);
  assert.equal((await failed).code, "DOCSTOKG_DEADLINE");
  assertNothingLeft(hub);
});

test("a request whose deadline has passed is not sent when its slot comes free before the timer of the deadline fires", async t => {
  const answer = Promise.withResolvers<void>();
  const server = await serve(t, async (_, response) => {
    await answer.promise;
    response.end();
  });
  const time = new LateTimers();
  const hub = await hubFor(t, { time, cache: false, limits: { global: { max_inflight: 1 } } });
  const { http: agent } = hub.agents({ deadlineMs: 5000 });
  t.after(() => agent.destroy());
  const first = hub.request(server.origin);
  await until(() => server.requests.length === 1);
  const failed = errorOf(http.get(server.origin, { agent }));
  await until(() => hub.snapshot().waiting === 1);
  time.lateUs = 5_000_000;
  answer.resolve();
  await (await first).body.text();
  assert.equal((await failed).code, "DOCSTOKG_DEADLINE");
  assert.equal(server.requests.length, 1);
  assertNothingLeft(hub);
});

test("a deadline that passes in the body is the error of the response, and needs no listener on the request", async t => {
  const server = await serve(t, (_, response) => void response.writeHead(200, { "content-length": 10 }).write("part"));
  const { time, hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  const { http: agent } = hub.agents({ deadlineMs: 5000 });
  t.after(() => agent.destroy());
  const response = await new Promise<IncomingMessage>(resolve => http.get(server.origin, { agent }, resolve));
  const read = text(response).catch(error => error);
  await time.advance(5000);
  assert.equal((await read).code, "DOCSTOKG_DEADLINE");
  await until(() => hub.snapshot().calls === 0);
  assertNothingLeft(hub);
  assert.deepEqual(
    only(events, "http_request").map(({ error, aborted }) => ({ error, aborted })),
    [{ error: "DOCSTOKG_DEADLINE", aborted: false }],
  );
});

test("a request uses its costs, and what its response says that it really used", async t => {
  const server = await serve(t, (_, response) => response.setHeader("x-credits-used", 60).end("ok"));
  const limits = rates("100/SECOND", {
    max_delay_ms: 0,
    costs: { credits: "100/HOUR" },
    cost_headers: { credits: "X-Credits-Used" },
  });
  const { hub } = await hubOnFakeTime(t, { limits });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const send = (credits: number) => hub.with({ costs: { credits } }, () => http.get(server.origin, { agent }));
  assert.equal(await bodyOf(send(90)), "ok");
  assert.ok((await errorOf(send(50))) instanceof RateLimitExceeded);
  const settleCosts = () => ({ credits: 100 });
  const last = hub.with({ costs: { credits: 40 }, settleCosts }, () => http.get(server.origin, { agent }));
  assert.equal(await bodyOf(last), "ok");
  assert.ok((await errorOf(send(1))) instanceof RateLimitExceeded);
});

test("options of hub.with apply to the requests inside it, and options without an effect are refused", async t => {
  const server = await serve(t, (_, response) => response.end());
  const { hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  await hub.with({ role: "landing", resolver: "mine" }, () => bodyOf(http.get(server.origin, { agent })));
  await until(() => only(events, "http_request").length === 1);
  const [event] = only(events, "http_request");
  assert.deepEqual([event?.role, event?.resolver], ["landing", "mine"]);
  assert.throws(() => hub.agents({ offline: true }), /hub\.agents: offline: has no effect on node:http/);
  const offline = hub.with({ offline: true }, () => errorOf(http.get(server.origin, { agent })));
  assert.equal((await offline).code, "DOCSTOKG_CONFIG");
});

test("close waits for requests of node:http and refuses later ones, and destroy ends them", async t => {
  const held: http.ServerResponse[] = [];
  const server = await serve(t, (_, response) => held.push(response));
  const { hub } = await hubOnFakeTime(t);
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const first = bodyOf(http.get(server.origin, { agent }));
  await until(() => held.length === 1);
  const closing = hub.close();
  assert.equal((await errorOf(http.get(server.origin, { agent }))).code, "DOCSTOKG_CLOSED");
  held[0]?.end("last");
  assert.equal(await first, "last");
  await closing;

  const other = (await hubOnFakeTime(t)).hub;
  const failing = errorOf(http.get(server.origin, { agent: other.agents().http }));
  await until(() => held.length === 2);
  await other.destroy(new Error("power cut"));
  assert.match((await failing).message, /power cut/);
});

test("uninstalling in any order restores node:http, and the last installed hub takes the requests", async t => {
  const server = await serve(t, (_, response) => response.end());
  const prototype = http.Agent.prototype as unknown as { addRequest: unknown };
  const { addRequest } = prototype;
  const [one, two] = [(await hubOnFakeTime(t)).hub, (await hubOnFakeTime(t)).hub];
  const counts = [recordEvents(one), recordEvents(two)].map(events => () => only(events, "http_request").length);
  const uninstalls = [one.install({}), two.install({})];
  const send = async () => {
    await bodyOf(http.get(server.origin, { agent: false }));
    await until(() => one.snapshot().calls + two.snapshot().calls === 0);
    return counts.map(count => count());
  };
  assert.deepEqual(await send(), [0, 1]);
  uninstalls[0]?.();
  assert.deepEqual(await send(), [0, 2]);
  uninstalls[1]?.();
  assert.deepEqual(await send(), [0, 2]);
  assert.equal(prototype.addRequest, addRequest);
});

/** When the client ends its request. */
const ENDINGS = {
  never: () => undefined,
  "at once": request => request.destroy(),
  "in the next tick": request => process.nextTick(() => request.destroy()),
  "in the next turn": request => setImmediate(() => request.destroy()),
  "with its socket": request => request.once("socket", () => request.destroy()),
  "with its response": request => request.once("response", () => request.destroy()),
  "in its body": request => request.once("response", response => response.once("data", () => response.destroy())),
} satisfies Record<string, (request: ClientRequest) => unknown>;

test("whenever clients end their requests, no slot, unit or queued request is left behind", async t => {
  const server = await serve(t, (_, response) => response.end("x".repeat(100_000)));
  const { hub } = await hubOnFakeTime(t, { limits: rates("100000/SECOND", { max_concurrent: 2 }) });
  const { http: agent } = hub.agents();
  t.after(() => agent.destroy());
  const ending = fc.constantFrom(...Object.values<(request: ClientRequest) => unknown>(ENDINGS));
  await fc.assert(
    fc.asyncProperty(fc.array(ending, { minLength: 1, maxLength: 12 }), async endings => {
      await Promise.all(
        endings.map(end => {
          const request = http.get(server.origin, { agent });
          request.on("error", () => undefined);
          request.on("response", response => response.on("error", () => undefined).resume());
          end(request);
          return new Promise(resolve => request.once("close", resolve));
        }),
      );
      await until(() => hub.snapshot().calls === 0 && hub.snapshot().inFlight === 0);
      assertNothingLeft(hub);
    }),
    { numRuns: 60 },
  );
});

const attemptsOf = (events: ReturnType<typeof recordEvents>) =>
  events.filter(event => event.event_type === "http_attempt");

test("each request has one http_attempt event before its http_request, with waits, connection and bytes", async t => {
  const server = await serve(t, async (request, response) => {
    await text(request);
    response.end("four");
  });
  const { time, hub } = await hubOnFakeTime(t, { limits: rates("1/SECOND") });
  const events = recordEvents(hub);
  const agents = hub.agents({});
  t.after(() => agents.http.destroy());
  const send = (body: string) => {
    const request = http.request(server.origin, { agent: agents.http, method: "POST" });
    request.write(body);
    request.end(Buffer.from("!"));
    return bodyOf(request);
  };
  await send("first");
  const second = send("é");
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(1000);
  await second;
  await until(() => hub.snapshot().calls === 0);
  const ended = events.filter(({ event_type }) => event_type === "http_attempt" || event_type === "http_request");
  assert.deepEqual(
    ended.map(event => event.event_type),
    ["http_attempt", "http_request", "http_attempt", "http_request"],
  );
  assert.deepEqual(
    attemptsOf(events).map(event => [
      event.attempt,
      event.cause,
      event.method,
      event.status,
      event.outcome,
      event.breaker_recorded,
      event.connection,
      event.rate_wait_ms,
      event.request_bytes,
      event.response_bytes,
    ]),
    [
      [1, "call", "POST", 200, "answered", "success", "new", 0, 6, 4],
      [1, "call", "POST", 200, "answered", "success", "reused", 1000, 3, 4],
    ],
  );
  const [first, , third] = ended;
  assert.ok(first?.event_type === "http_attempt" && ended[1]?.event_type === "http_request");
  assert.equal(first.call_id, ended[1].call_id);
  assert.ok(third?.event_type === "http_attempt" && third.call_id !== first.call_id);
});

test("an attempt without a connection, one that breaks off and one that is dropped say so", async t => {
  const server = await serve(t, (request, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write("part", () => request.url === "/cut" && response.destroy());
  });
  const unused = net.createServer().listen(0, "127.0.0.1");
  await once(unused, "listening");
  const { port } = unused.address() as AddressInfo;
  await new Promise(resolve => unused.close(resolve));
  const { hub } = await hubOnFakeTime(t);
  const events = recordEvents(hub);
  const agents = hub.agents({});
  t.after(() => agents.http.destroy());
  const get = (url: string) => http.get(url, { agent: agents.http });
  assert.equal((await errorOf(get(`http://127.0.0.1:${port}`))).code, "ECONNREFUSED");
  const cut = await responseOf(get(`${server.origin}/cut`));
  await assert.rejects(text(cut));
  await until(() => hub.snapshot().calls === 0);
  const request = get(`${server.origin}/dropped`);
  const response = await responseOf(request);
  await once(response, "data");
  response.destroy();
  await until(() => hub.snapshot().calls === 0);
  assert.deepEqual(
    attemptsOf(events).map(event => [
      event.connection,
      event.status,
      event.error,
      event.outcome,
      event.breaker_recorded,
    ]),
    [
      ["none", undefined, "ECONNREFUSED", "failed", "failure"],
      ["new", 200, "ECONNRESET", "failed", "failure"],
      ["new", 200, undefined, "aborted", "success"],
    ],
  );
  assert.deepEqual(
    events.flatMap(event => (event.event_type === "http_request" ? [[event.attempts, event.error]] : [])),
    [
      [0, "ECONNREFUSED"],
      [1, "ECONNRESET"],
      [1, undefined],
    ],
  );
});

test("a request that is refused or ended in the queue has no http_attempt event, and its wait is counted", async t => {
  const server = await serve(t, (_, response) => response.end());
  const { time, hub } = await hubOnFakeTime(t, { limits: rates("1/HOUR", { max_delay_ms: 4_000_000 }) });
  const events = recordEvents(hub);
  const agents = hub.agents({});
  t.after(() => agents.http.destroy());
  await bodyOf(http.get(server.origin, { agent: agents.http }));
  const refused = hub.with({ maxWaitMs: 5 }, () => http.get(server.origin, { agent: agents.http }));
  assert.ok((await errorOf(refused)) instanceof RateLimitExceeded);
  const queued = http.get(server.origin, { agent: agents.http });
  await time.advance(700);
  const ended = errorOf(queued);
  queued.destroy();
  await ended;
  await until(() => hub.snapshot().calls === 0);
  assert.equal(attemptsOf(events).length, 1);
  assert.deepEqual(
    events.flatMap(event =>
      event.event_type === "http_request" ? [[event.attempts, event.rate_delay_ms, event.unsent_wait_ms]] : [],
    ),
    [
      [1, 0, 0],
      [0, 0, 0],
      [0, 700, 700],
    ],
  );
});
