import assert from "node:assert/strict";
import { once } from "node:events";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { type Dispatcher, interceptors, fetch as undiciFetch, request as undiciRequest } from "undici";
import { dispatchRecorded, dispatchTo, RecordingHandler } from "../../test/http/handlers.ts";
import { assertNothingLeft, heldServer, hubFor, only, recordEvents, serve, tlsFixture } from "../../test/http/kit.ts";
import { RateLimitExceeded } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";

/** A TLS server that answers with the HTTP version of the request. */
async function versionServer(t: TestContext): Promise<number> {
  const server = createSecureServer({ ...tlsFixture(), allowHTTP1: true }, ({ httpVersion }, response) => {
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.end(httpVersion);
  });
  server.on("secureConnection", socket => t.after(() => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("a handler with private state gets every callback once, with undici's interceptors around the hub", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const expected = ["start", "head 200", "data ok", "end"];
  assert.deepEqual(await dispatchRecorded(hub.dispatcher(), server.origin), expected);
  const around = [interceptors.retry(), interceptors.redirect({ maxRedirections: 2 }), interceptors.cache()];
  for (const interceptor of around) {
    assert.deepEqual(await dispatchRecorded(hub.dispatcher().compose(interceptor), server.origin), expected);
  }
  assert.deepEqual(await dispatchRecorded(hub.dispatcher().compose(...around), server.origin), expected);
  assertNothingLeft(hub);
});

test("after a refusal undici's deduplicate interceptor serves the next call", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const dispatcher = hub.dispatcher().compose(interceptors.deduplicate());
  const send = async () => (await undiciRequest(server.origin, { dispatcher })).body.text();
  assert.equal(await send(), "ok");
  await assert.rejects(send(), RateLimitExceeded);
  await time.advance(1000);
  assert.equal(await send(), "ok");
  assertNothingLeft(hub, time);
});

test("undici's retry interceptor around the hub does not retry refusals", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time: new FakeTime(),
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const dispatcher = hub.dispatcher().compose(interceptors.retry({ minTimeout: 1, maxTimeout: 1 }));
  await (await undiciRequest(server.origin, { dispatcher })).body.text();
  await assert.rejects(undiciRequest(server.origin, { dispatcher }), { code: "DOCSTOKG_RATE_LIMITED" });
  assert.deepEqual(
    only(events, "ratelimit.acquire").map(({ outcome }) => outcome),
    ["granted", "refused"],
  );
});

test("undici's interceptors around a closed hub get HubClosedError, without a controller", async t => {
  const hub = await hubFor(t);
  await hub.close();
  for (const interceptor of [
    interceptors.retry(),
    interceptors.redirect({ maxRedirections: 2 }),
    interceptors.deduplicate(),
    interceptors.cache(),
    interceptors.dump(),
    interceptors.responseError(),
  ]) {
    const dispatcher = hub.dispatcher().compose(interceptor);
    await assert.rejects(undiciRequest("http://example.org/", { dispatcher }), { code: "DOCSTOKG_CLOSED" });
  }
});

test("Node's own fetch uses HTTP/2 through a hub, installed or as its dispatcher, and gets repeated headers completely", async t => {
  const port = await versionServer(t);
  const ca = tlsFixture().cert;
  const hub = await hubFor(t, {
    cache: false,
    network: { tls: { ca }, connectTo: [`example.org:443:127.0.0.1:${port}`] },
  });
  const uninstall = hub.install();
  t.after(uninstall);
  const answers = [
    await fetch("https://example.org/"),
    await hub.fetch("https://example.org/"),
    await fetch("https://example.org/", { dispatcher: hub.dispatcher() } as unknown as RequestInit),
  ];
  uninstall();
  for (const answer of answers) {
    assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.equal(await answer.text(), "2.0");
  }
});

test("close and destroy of a dispatcher resolve or call back, and the hub stays open", async t => {
  const { held, server, hub, arrived } = await heldServer(t, { cache: false });
  const handler = dispatchTo(hub, server.origin, new RecordingHandler());
  await arrived(1);
  for (const end of [
    (dispatcher: Dispatcher) => dispatcher.close(),
    (dispatcher: Dispatcher) => dispatcher.destroy(),
    (dispatcher: Dispatcher) => dispatcher.destroy(new Error("for today")),
  ]) {
    const ended = end(hub.dispatcher());
    assert.ok(ended instanceof Promise);
    await ended;
  }
  await new Promise<void>(resolve => hub.dispatcher().close(resolve));
  await new Promise<void>(resolve => hub.dispatcher().destroy(resolve));
  await new Promise<void>(resolve => hub.dispatcher().destroy(new Error("for today"), resolve));
  held[0]?.end();
  await handler.waitFor("end");
  const other = dispatchTo(hub, server.origin, new RecordingHandler());
  await arrived(2);
  held[1]?.end();
  await other.waitFor("end");
});

test("hub.dispatcher works with undici's functions and Node's own fetch, and applies its options", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  const dispatcher = hub.dispatcher({ role: "landing" });
  await (await undiciRequest(server.origin, { dispatcher })).body.text();
  await (await undiciFetch(server.origin, { dispatcher })).text();
  await (await fetch(server.origin, { dispatcher } as unknown as RequestInit)).text();
  await (await undiciRequest(server.origin, { dispatcher, role: "artifact" } as never)).body.text();
  assert.deepEqual(
    only(events, "http_request").map(({ role }) => role),
    ["landing", "landing", "landing", "artifact"],
  );
});
