import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { startProxy } from "../../../test/http/connect-proxy.ts";
import { hubFor, ONE_A_SECOND_QUEUED, only, recordEvents, serve, tlsFixture, until } from "../../../test/http/kit.ts";
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
