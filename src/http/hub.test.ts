import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor, only, recordEvents, serve, until } from "../../test/http/kit.ts";
import { FakeTime } from "../testing/fake-time.ts";

test("hub.fetch answers as fetch does, with Node's own Response", async t => {
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

test("hub.request answers as undici.request does", async t => {
  const server = await serve(t, (_, response) => response.end("hello"));
  const hub = await hubFor(t);
  const { statusCode, body } = await hub.request(`${server.origin}/x`, { query: { a: "1" } });
  assert.equal(statusCode, 200);
  assert.equal(await body.text(), "hello");
  assert.equal(server.requests[0]?.url, "/x?a=1");
});

test("one http_request event tells what happened, without the URL", async t => {
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

test("hub.fetch takes what fetch takes: nothing, null, a Request, a FormData", async t => {
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

test("what we refuse ourselves hub.fetch rejects with as it is; a broken network stays a failed fetch", async t => {
  const server = await serve(t, request => request.socket.resetAndDestroy());
  const hub = await hubFor(t, { retry: false });
  await assert.rejects(hub.fetch(server.origin, { maxWaitMs: -1 }), RangeError);
  await assert.rejects(
    hub.fetch(server.origin, { weight: 5000 }),
    /weight 5000 is larger than the rate limit 1000\/SECOND/,
  );
  await assert.rejects(hub.fetch(server.origin), { name: "TypeError", message: "fetch failed" });
});

test("a request over a new connection counts as being written until its answer begins, or for a tenth of a second", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => (request.url === "/silent" ? undefined : response.end("ok")));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 5000 } } },
  });
  const silent = hub.request(`${server.origin}/silent`).catch(() => undefined);
  await until(() => server.requests.length === 1);
  const next = hub.request(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(1099);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(hub.snapshot().waiting, 0);
  assert.equal((await next).statusCode, 200);
  await hub.destroy();
  await silent;
});

test("a request over a connection that is there counts from when it was sent", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => (request.url === "/silent" ? undefined : response.end("ok")));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "2/SECOND", guard_ms: 0, max_delay_ms: 5000 } } },
  });
  await (await hub.request(server.origin)).body.text();
  // undici takes a connection back a turn of the loop later.
  await new Promise(resolve => setImmediate(resolve));
  const silent = hub.request(`${server.origin}/silent`).catch(() => undefined);
  await until(() => server.requests.length === 2);
  assert.equal(server.connections, 1);
  const others = [hub.request(server.origin), hub.request(server.origin)];
  await until(() => hub.snapshot().waiting === 2);
  await time.advance(999);
  assert.equal(hub.snapshot().waiting, 2);
  await time.advance(1);
  assert.equal(hub.snapshot().waiting, 0, "both windows have passed, and nobody waits for an answer");
  await Promise.all(others);
  await hub.destroy();
  await silent;
});
