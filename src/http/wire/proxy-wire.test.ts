import assert from "node:assert/strict";
import { once } from "node:events";
import type http from "node:http";
import type { ServerResponse } from "node:http";
import https from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { startProxy } from "../../../test/http/connect-proxy.ts";
import {
  assertNothingLeft,
  hubFor,
  ONE_A_SECOND_QUEUED,
  only,
  recordEvents,
  serve,
  tlsFixture,
  until,
} from "../../../test/http/kit.ts";
import { ConfigError, PrivateAddressError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { proxySettings } from "./proxy-wire.ts";

test("https requests go through HTTPS_PROXY under the limits of their own host, and those in NO_PROXY do not", async t => {
  const { key, cert } = tlsFixture();
  const server = https.createServer({ key, cert }, (_, response) => response.end("secure")).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const plain = await serve(t, (_, response) => response.end("direct"));
  const { url, targets } = await startProxy(t, (server.address() as AddressInfo).port);
  const hub = await hubFor(t, {
    env: { HTTPS_PROXY: url, NO_PROXY: "127.0.0.1" },
    network: { proxy: "env", tls: { ca: cert } },
    cache: false,
  });
  const events = recordEvents(hub);
  assert.equal(await (await hub.fetch("https://example.org/x")).text(), "secure");
  assert.equal(await (await hub.fetch(plain.origin)).text(), "direct");
  assert.deepEqual(targets, ["example.org:443"]);
  assert.deepEqual(
    only(events, "http_request").map(({ host }) => host),
    ["example.org", "127.0.0.1"],
  );
});

test("without proxies in the environment, and for hosts in connectTo, the hub connects directly", async t => {
  const server = await serve(t, (_, response) => response.end("direct"));
  const { url, targets } = await startProxy(t, server.port);
  const without = await hubFor(t, { network: { proxy: "env" }, cache: false });
  assert.equal(await (await without.fetch(server.origin)).text(), "direct");
  const mapped = await hubFor(t, {
    env: { http_proxy: url },
    network: { proxy: "env", connectTo: [`example.org::127.0.0.1:${server.port}`] },
    cache: false,
  });
  assert.equal(await (await mapped.fetch("http://example.org/")).text(), "direct");
  assert.deepEqual(targets, []);
});

test("events name the first request of each connection, through a proxy and beside it", async t => {
  const { key, cert } = tlsFixture();
  const server = https.createServer({ key, cert }, (_, response) => response.end("secure")).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const plain = await serve(t, (_, response) => response.end("direct"));
  const { url } = await startProxy(t, (server.address() as AddressInfo).port);
  const hub = await hubFor(t, {
    env: { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: "127.0.0.1" },
    network: { proxy: "env", tls: { ca: cert }, connectTo: [`mapped.example::127.0.0.1:${plain.port}`] },
    cache: false,
  });
  const events = recordEvents(hub);
  for (const target of ["https://example.org/", "http://example.org/", plain.origin, "http://mapped.example/"])
    for (let number = 0; number < 2; number += 1) {
      await (await hub.fetch(target)).text();
      // undici reuses a connection from the next turn of the event loop on.
      await setImmediate();
    }
  assert.deepEqual(
    only(events, "http_attempt").map(({ connection }) => connection),
    ["new", "reused", "new", "reused", "new", "reused", "new", "reused"],
  );
});

test("through a proxy a request over an open connection counts from its response, because the proxy may connect anew", async t => {
  const time = new FakeTime();
  const held: ServerResponse[] = [];
  const proxy = await serve(t, (_, response, number) => (number === 1 ? response.end() : void held.push(response)));
  const hub = await hubFor(t, {
    time,
    env: { HTTP_PROXY: proxy.origin },
    network: { proxy: "env" },
    cache: false,
    limits: ONE_A_SECOND_QUEUED,
  });
  const events = recordEvents(hub);
  const get = async () => (await hub.fetch("http://example.org/")).text();
  await get();
  await time.advance(1000);
  const second = get();
  await until(() => held.length === 1);
  const third = get();
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(2000);
  assert.equal(hub.snapshot().waiting, 1);
  held[0]?.end();
  await second;
  await time.advance(1000);
  await until(() => held.length === 2);
  held[1]?.end();
  await third;
  assert.deepEqual(
    only(events, "http_attempt").map(({ connection }) => connection),
    ["new", "reused", "reused"],
  );
});

test("a header with several values is sent with all of them through a proxy, with and without a tunnel", async t => {
  const { key, cert } = tlsFixture();
  const seen: (readonly string[] | undefined)[] = [];
  const server = https.createServer({ key, cert }, (request, response) => {
    seen.push(request.headersDistinct["x-part"], request.headersDistinct["cookie"]);
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const plain = await serve(t, (request, response) => {
    seen.push(request.headersDistinct["x-part"], request.headersDistinct["cookie"]);
    response.end();
  });
  const { url } = await startProxy(t, (server.address() as AddressInfo).port);
  const hub = await hubFor(t, {
    env: { HTTP_PROXY: plain.origin, HTTPS_PROXY: url },
    network: { proxy: "env", tls: { ca: cert } },
    cache: false,
  });
  for (const target of ["http://example.org/", "https://example.org/"]) {
    const { body } = await hub.request(target, { headers: { "x-part": ["1", "2"], cookie: ["a=1", "b=2"] } });
    await body.dump();
  }
  assert.deepEqual(seen, [
    ["1", "2"],
    ["a=1", "b=2"],
    ["1", "2"],
    ["a=1", "b=2"],
  ]);
});

test("a request with a body and its length is sent through a proxy, with and without a tunnel", async t => {
  const { key, cert } = tlsFixture();
  const echo: http.RequestListener = async (request, response) => response.end(await text(request));
  const server = https.createServer({ key, cert }, echo).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const plain = await serve(t, echo);
  const { url } = await startProxy(t, (server.address() as AddressInfo).port);
  const hub = await hubFor(t, {
    env: { HTTP_PROXY: plain.origin, HTTPS_PROXY: url },
    network: { proxy: "env", tls: { ca: cert } },
  });
  const headers = { "content-length": "4", host: "example.org", connection: "keep-alive" };
  for (const target of ["http://example.org/", "https://example.org/"]) {
    assert.equal(await (await hub.fetch(target, { method: "POST", body: "sent" })).text(), "sent");
    assert.equal(await (await hub.request(target, { method: "PUT", body: "sent", headers })).body.text(), "sent");
  }
});

/** A proxy that treats each connection in its own way, after the first bytes of the hub. */
async function startRawProxy(t: TestContext, act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("data", () => act(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a proxy that does not answer, or not to the end, fails a request within the time limits of the hub", async t => {
  const silent = await startRawProxy(t, () => undefined);
  const stalled = await startRawProxy(t, socket => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
  const openedSocks = await startRawProxy(t, socket => {
    socket.once("data", () => socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])));
    socket.write(Buffer.from([5, 0]));
  });
  const cases = [
    [`http://${silent}`, "http://example.org/", "UND_ERR_HEADERS_TIMEOUT"],
    [`http://${silent}`, "https://example.org/", "UND_ERR_CONNECT_TIMEOUT"],
    [`http://${stalled}`, "http://example.org/", "UND_ERR_BODY_TIMEOUT"],
    [`socks5://${silent}`, "http://example.org/", "UND_ERR_CONNECT_TIMEOUT"],
    [`socks5://${openedSocks}`, "http://example.org/", "UND_ERR_HEADERS_TIMEOUT"],
  ] as const;
  for (const [proxy, target, code] of cases) {
    const hub = await hubFor(t, {
      env: { HTTP_PROXY: proxy },
      network: { proxy: "env", headersTimeoutMs: 50, bodyTimeoutMs: 50, connectTimeoutMs: 50.5 },
      cache: false,
      retry: false,
    });
    const events = recordEvents(hub);
    const answer = async () => (await hub.request(target)).body.text();
    await assert.rejects(answer(), { code }, `${proxy} ${target}`);
    assert.equal(only(events, "breaker_failure").length, 1, `${proxy} ${target}`);
    assertNothingLeft(hub);
  }
});

test("requests to a host that a proxy does not connect time out together, not one after another", async t => {
  let tunnels = 0;
  const proxy = await startRawProxy(t, () => {
    tunnels += 1;
  });
  const hub = await hubFor(t, {
    env: { HTTPS_PROXY: proxy },
    network: { proxy: "env", connectTimeoutMs: 50 },
    cache: false,
    retry: false,
  });
  const requests = Array.from({ length: 20 }, () => hub.request("https://example.org/"));
  for (const request of requests) await assert.rejects(request, { code: "UND_ERR_CONNECT_TIMEOUT" });
  assert.equal(tunnels, 1);
});

test("if a proxy cannot connect to a host, the host counts as not reached, and the request is retried", async t => {
  const refusedSocks = (reply: number) => (socket: Socket) => {
    socket.once("data", () => socket.write(Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0])));
    socket.write(Buffer.from([5, 0]));
  };
  const cases: readonly (readonly [string, string, (socket: Socket) => void])[] = [
    ["502", "http", socket => socket.write("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")],
    ["closed", "http", socket => socket.end()],
    ["no HTTP", "http", socket => socket.write("SSH-2.0-OpenSSH\r\n")],
    ["refused", "socks5", refusedSocks(5)],
  ];
  for (const [name, scheme, act] of cases) {
    const proxy = `${scheme}://${await startRawProxy(t, act)}`;
    const hub = await hubFor(t, {
      env: { HTTPS_PROXY: proxy },
      network: { proxy: "env" },
      cache: false,
      retry: { attempts: 2, baseMs: 0 },
    });
    const events = recordEvents(hub);
    await assert.rejects(hub.request("https://example.org/"), (error: Error) => error.name !== "AbortError", name);
    assert.equal(only(events, "breaker_failure").length, 2, name);
    assertNothingLeft(hub);
  }
});

test("a proxy that does not permit a connection is no failure of the host, and the error names its answer", async t => {
  const proxy = await startRawProxy(t, socket =>
    socket.write("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"),
  );
  const hub = await hubFor(t, { env: { HTTPS_PROXY: proxy }, network: { proxy: "env" }, cache: false });
  const events = recordEvents(hub);
  await assert.rejects(hub.request("https://example.org/"), {
    code: "UND_ERR_INVALID_ARG",
    message: "the proxy refused a connection to example.org:443 with status 407",
  });
  assert.deepEqual(only(events, "breaker_failure"), []);
  assert.equal(only(events, "http_attempt").length, 1);
  assertNothingLeft(hub);
});

test("with allowPrivate: false a URL with a private address is not sent to the proxy", async t => {
  const { url, targets } = await startProxy(t, 9);
  const hub = await hubFor(t, {
    env: { http_proxy: url },
    network: { proxy: "env", allowPrivate: false },
    cache: false,
  });
  for (const target of ["http://169.254.169.254/", "http://[::1]/", "http://localhost/", "http://a.localhost/"])
    await assert.rejects(hub.fetch(target), PrivateAddressError);
  assert.deepEqual(targets, []);
});

test("small letters win, a scheme may be left out, and an invalid address is an error without its password", () => {
  assert.equal(proxySettings({}), undefined);
  assert.equal(proxySettings({ NO_PROXY: "*" }), undefined);
  assert.deepEqual(proxySettings({ HTTP_PROXY: "http://a:1", http_proxy: "b:2", NO_PROXY: "c" }), {
    httpProxy: "http://b:2",
    httpsProxy: "",
    noProxy: "c",
  });
  // A parser takes "er" for the host.
  for (const proxy of ["http://user:hunt@er/2@proxy:1", "user:hunt@er?2@proxy:1"])
    assert.throws(
      () => proxySettings({ HTTPS_PROXY: proxy }),
      (error: Error) => error instanceof ConfigError && /must be percent-encoded$/.test(error.message),
    );
  assert.throws(
    () => proxySettings({ HTTPS_PROXY: "ftp://user:hunter2@proxy" }),
    (error: Error) => error instanceof ConfigError && /^HTTPS_PROXY: "ftp:\/\/…@proxy" is not/.test(error.message),
  );
});
