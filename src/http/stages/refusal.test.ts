import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLeft, hubFor, ONE_A_SECOND, only, recordEvents, serve } from "../../../test/http/kit.ts";
import { ConfigError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";

async function limited(t: Parameters<typeof serve>[0], options: Parameters<typeof hubFor>[1] = {}) {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { time, cache: false, retry: false, limits: ONE_A_SECOND, ...options });
  return { time, server, hub, events: recordEvents(hub) };
}

test("with refusals: respond a rate limit is a 429 that says why and when to retry", async t => {
  const { time, server, hub, events } = await limited(t);
  await (await hub.fetch(server.origin, { refusals: "respond" })).text();
  await time.advance(300);
  const response = await hub.fetch(server.origin, { refusals: "respond" });
  assert.equal(response.status, 429);
  assert.equal(response.headers.get("retry-after"), "1");
  assert.equal(response.headers.get("retry-after-ms"), "700");
  assert.equal(response.headers.get("x-ratelimit-remaining"), "0");
  assert.equal(response.headers.get("x-ratelimit-reset"), String(Math.ceil((time.wallMs() + 700) / 1000)));
  assert.equal(response.headers.get("cache-status"), "docstokg; detail=rate-limited");
  const body = (await response.json()) as { message: string; error: Record<string, unknown> };
  assert.match(body.message, /^rate limit 1\/SECOND of 127\.0\.0\.1 \(metadata\) reached: next slot in 700 ms/);
  assert.deepEqual(body.error, {
    type: "rate-limited",
    code: "DOCSTOKG_RATE_LIMITED",
    message: body.message,
    host: "127.0.0.1",
    role: "metadata",
    constraint: { kind: "window", owner: "127.0.0.1", limit: "1/SECOND" },
    decided_by: { limit: "1/SECOND", value: "1/SECOND", where: "policy.ratelimits", mode: "enforce" },
    retry_after_ms: 700,
  });
  assert.equal(server.requests.length, 1);
  const last = only(events, "http_request").at(-1);
  assert.deepEqual([last?.status, last?.error, last?.attempts], [undefined, "DOCSTOKG_RATE_LIMITED", 0]);
  assertNothingLeft(hub);
});

test("with refusals: respond an open circuit and a missing slot are a 503", async t => {
  const held: (() => void)[] = [];
  const server = await serve(t, (request, response) => {
    if (request.url === "/fail") response.writeHead(500).end();
    else held.push(() => response.end("ok"));
  });
  const hub = await hubFor(t, {
    refusals: "respond",
    retry: false,
    cache: false,
    limits: { global: { max_inflight: 1 } },
    breakers: { defaults: { roles: { landing: { fail_max: 1, reset_timeout_s: 45 } } } },
  });
  await (await hub.fetch(`${server.origin}/fail`, { role: "landing" })).text();
  const open = await hub.fetch(server.origin, { role: "landing" });
  assert.equal(open.status, 503);
  assert.equal(open.headers.get("retry-after"), "45");
  assert.equal(open.headers.get("x-ratelimit-remaining"), null);
  assert.equal(open.headers.get("cache-status"), "docstokg; detail=breaker-open");
  assert.match(await open.text(), /"code":"DOCSTOKG_BREAKER_OPEN"/);

  const first = hub.fetch(server.origin);
  const busy = await hub.fetch(server.origin, { maxWaitMs: 0 });
  assert.equal(busy.status, 503);
  assert.equal(busy.headers.get("retry-after"), "1");
  assert.equal(busy.headers.get("cache-status"), "docstokg; detail=busy");
  const { error } = (await busy.json()) as { error: { retry_after_ms: unknown } };
  assert.equal(error.retry_after_ms, null);
  while (held.length === 0) await new Promise(resolve => setImmediate(resolve));
  held[0]?.();
  assert.equal(await (await first).text(), "ok");
});

test("the option works for hub.request, HEAD, dispatchers and the global fetch, and a call overrides the hub", async t => {
  const { server, hub } = await limited(t, { refusals: "respond" });
  await (await hub.fetch(server.origin)).text();
  const { statusCode, body } = await hub.request(server.origin);
  assert.equal(statusCode, 429);
  assert.match(await body.text(), /rate limit/);
  const head = await hub.fetch(server.origin, { method: "HEAD", weight: 1 });
  assert.equal(await head.text(), "");
  await assert.rejects(hub.fetch(server.origin, { refusals: "throw" }), { code: "DOCSTOKG_RATE_LIMITED" });
  const uninstall = hub.install({ maxWaitMs: 0 });
  t.after(uninstall);
  const response = await fetch(server.origin);
  assert.equal(response.status, 429);
  await response.body?.cancel();
});

test("failures of the network stay errors", async t => {
  const server = await serve(t, request => request.socket.resetAndDestroy());
  const hub = await hubFor(t, { refusals: "respond", retry: false });
  await assert.rejects(hub.fetch(server.origin), { name: "TypeError", message: "fetch failed" });
});

test("a stale response that stale-if-error permits is served instead of a refusal", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) =>
    response.setHeader("cache-control", "max-age=0, stale-if-error=60").end("stored"),
  );
  const hub = await hubFor(t, { time, refusals: "respond", limits: ONE_A_SECOND });
  await (await hub.fetch(server.origin)).text();
  await time.advance(1);
  const response = await hub.fetch(server.origin);
  assert.equal(response.status, 200);
  assert.equal(await response.text(), "stored");
});

test("an invalid value is refused", async t => {
  await assert.rejects(hubFor(t, { refusals: "reply" as "respond" }), ConfigError);
  const hub = await hubFor(t);
  await assert.rejects(hub.fetch("http://127.0.0.1:8080/", { refusals: "reply" as "respond" }), RangeError);
});
