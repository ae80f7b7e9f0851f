import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLeft, hubFor, only, recordEvents, serve } from "../../test/http/kit.ts";

test("a header whose value is an object is refused with a TypeError, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  for (const value of [{}, [{}], { toString: () => "text" }]) {
    const headers = { "x-thing": value } as unknown as Record<string, string>;
    await assert.rejects(hub.request(server.origin, { headers }), TypeError);
  }
  assert.equal(server.requests.length, 0);
  assertNothingLeft(hub);
});

test("a header that undici does not send is refused before the request uses a unit of the limit", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  for (const name of ["Expect", "keep-alive", "Transfer-Encoding", "upgrade"])
    for (let call = 0; call < 2; call += 1)
      await assert.rejects(hub.request(server.origin, { headers: { [name]: "x" } }), { name: "NotSupportedError" });
  assert.equal(server.requests.length, 0);
  assert.equal(only(events, "http_attempt").length, 0);
  assert.equal(only(events, "ratelimit.acquire").length, 0);
});

test("a header of the connection that undici refuses is refused before the request uses a unit of the limit", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  for (const headers of [
    ["connection", "two words"],
    ["content-length", "three"],
    ["content-length", "3", "content-length", "3"],
    ["host", "a.example", "host", "a.example"],
  ])
    await assert.rejects(hub.request(server.origin, { method: "PUT", body: "abc", headers }), /invalid .* header/);
  const headers = ["x-name", "host", "host", "a.example", "connection", "keep-alive, x-name", "content-length", "3"];
  const { statusCode, body } = await hub.request(server.origin, { method: "PUT", body: "abc", headers });
  await body.dump();
  assert.equal(statusCode, 200);
  assert.equal(server.requests.length, 1);
  assertNothingLeft(hub);
  assert.equal(hub.snapshot().keys[0]?.windows[0]?.used, 1);
});

test("a header with several values is sent with all of them, and one without a value is not sent", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  const headers = { "x-many": ["one", "two"], "x-none": undefined };
  await (await hub.request(server.origin, { headers })).body.text();
  assert.equal(server.requests[0]?.headers["x-many"], "one, two");
  assert.equal(server.requests[0]?.headers["x-none"], undefined);
});
