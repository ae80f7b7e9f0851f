import assert from "node:assert/strict";
import { test } from "node:test";
import { heard, hubFor, only, serve } from "./kit.ts";

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
  const events = heard(hub);
  await (await hub.fetch(`${server.origin}/x?api_key=secret`)).text();
  const [event, ...more] = only(events, "http_request");
  assert.equal(more.length, 0);
  assert.equal(event?.status, 200);
  assert.equal(event?.attempts, 1);
  assert.equal(event?.breaker_recorded, "success");
  assert.ok(!JSON.stringify(events).includes("secret"));
});
