import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { hubFor, only, recordEvents, serve, until } from "../../../test/http/kit.ts";
import { RateLimitExceeded } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";

const CHUNK = Buffer.alloc(65_536, "x");

/** A server whose answers the test gives by hand. */
async function slow(t: Parameters<typeof serve>[0], options: Parameters<typeof hubFor>[1] = {}) {
  const held: ServerResponse[] = [];
  const server = await serve(t, (_, response) => void held.push(response));
  const hub = await hubFor(t, { retry: false, ...options });
  const events = recordEvents(hub);
  const get = async (init: Parameters<typeof hub.fetch>[1] = {}) => (await hub.fetch(server.origin, init)).text();
  const arrived = (count: number) => until(() => held.length === count);
  return { held, server, hub, events, get, arrived };
}

test("identical requests under way are one request, and cost one token", async t => {
  const { held, server, get, arrived, events, hub } = await slow(t);
  const answers = Array.from({ length: 20 }, () => get());
  await arrived(1);
  await until(() => hub.snapshot().calls >= 20);
  held[0]?.setHeader("cache-control", "max-age=60").end("once");
  assert.deepEqual(await Promise.all(answers), Array(20).fill("once"));
  assert.equal(server.requests.length, 1);
  assert.equal(only(events, "ratelimit.acquire").length, 1);
  assert.equal(only(events, "breaker_success").length, 1);
  assert.equal(only(events, "http_request").filter(({ coalesced }) => coalesced).length, 19);
});

test("requests that differ in a field are different requests", async t => {
  const { held, get, arrived } = await slow(t);
  const answers = [get({ headers: { accept: "a/b" } }), get({ headers: { accept: "c/d" } })];
  await arrived(2);
  for (const [number, response] of held.entries()) response.end(`${number}`);
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(["0", "1"]));
});

test("the abort of the first one is nobody else's", async t => {
  const { held, get, arrived, server } = await slow(t);
  const controller = new AbortController();
  const first = get({ signal: controller.signal });
  await arrived(1);
  const others = [get(), get()];
  await new Promise(resolve => setImmediate(resolve));
  controller.abort();
  await assert.rejects(first, { name: "AbortError" });
  held[0]?.setHeader("cache-control", "max-age=60").end("shared");
  assert.deepEqual(await Promise.all(others), ["shared", "shared"]);
  assert.equal(server.requests.length, 1);
});

test("when all have gone, the request is ended too", async t => {
  const { held, get, arrived, hub } = await slow(t);
  const controller = new AbortController();
  const answers = [get({ signal: controller.signal }), get({ signal: controller.signal })];
  await arrived(1);
  const closed = new Promise(resolve => held[0]?.on("close", resolve));
  controller.abort();
  for (const answer of answers) await assert.rejects(answer, { name: "AbortError" });
  await closed;
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(hub.snapshot().calls, 0);
});

test("an answer that must not be stored is the first one's alone; the others ask for themselves, all at once", async t => {
  const { held, get, arrived } = await slow(t);
  const answers = [get(), get(), get()];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  held[0]?.setHeader("cache-control", "no-store").end("0");
  await arrived(3);
  held[1]?.setHeader("cache-control", "no-store").end("1");
  held[2]?.setHeader("cache-control", "no-store").end("2");
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(["0", "1", "2"]));
  // By now it is known that there is nothing to wait for.
  const more = [get(), get()];
  await arrived(5);
  held[3]?.end("3");
  held[4]?.end("4");
  await Promise.all(more);
});

test("a failure is shared: a host in trouble is asked once, not once for each", async t => {
  const { held, get, arrived, server } = await slow(t);
  const answers = [get(), get(), get()];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  held[0]?.writeHead(500).end("down");
  assert.deepEqual(await Promise.all(answers), ["down", "down", "down"]);
  assert.equal(server.requests.length, 1);
});

test("a connection that breaks fails everybody who waited for it", async t => {
  const { held, get, arrived, server } = await slow(t);
  const answers = [get(), get()];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  held[0]?.socket?.resetAndDestroy();
  for (const answer of answers) await assert.rejects(answer);
  assert.equal(server.requests.length, 1);
});

test("a refusal is one's own: who may wait longer asks again", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await slow(t, {
    time,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const other = hub.fetch(`${server.origin}/other`);
  await arrived(1);
  held[0]?.end();
  await other;
  const impatient = hub.request(server.origin);
  const patient = hub.request(server.origin, { maxWaitMs: 5000 });
  await assert.rejects(impatient, RateLimitExceeded);
  await time.advance(1000);
  await arrived(2);
  held[1]?.end("patient");
  assert.equal(await (await patient).body.text(), "patient");
});

test("who has waited in line with another has that much less of his own bound left", async t => {
  const time = new FakeTime();
  const { server, hub, arrived } = await slow(t, {
    time,
    limits: { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_concurrent: 1 } } },
  });
  const refusedMs: number[] = [];
  const wait = async () => {
    await assert.rejects(hub.request(server.origin, { maxWaitMs: 100 }), { name: "BusyError" });
    refusedMs.push(time.monotonicUs() / 1000);
  };
  void hub.request(`${server.origin}/slow`).catch(() => undefined);
  await arrived(1);
  const first = wait();
  await time.advance(50);
  const second = wait();
  await time.advance(300);
  await Promise.all([first, second]);
  assert.deepEqual(refusedMs, [100, 150]);
});

test("nobody waits in line with one whose deadline makes it more patient", async t => {
  const { held, server, hub, arrived } = await slow(t, {
    limits: { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_concurrent: 1 } } },
  });
  const answers = [hub.request(`${server.origin}/slow`)];
  await arrived(1);
  answers.push(hub.request(server.origin, { deadlineMs: 60_000 }), hub.request(server.origin));
  await until(() => hub.snapshot().waiting === 2);
  for (let count = 1; count <= 3; count += 1) {
    await arrived(count);
    held[count - 1]?.end("answer");
    await (await answers[count - 1])?.body.text();
  }
  assert.equal(server.requests.length, 3);
});

test("one who does not read holds up nobody", async t => {
  const { held, hub, server, arrived } = await slow(t);
  const unread = hub.fetch(server.origin);
  const reader = hub.fetch(server.origin);
  await arrived(1);
  held[0]?.setHeader("cache-control", "max-age=60");
  for (let chunk = 0; chunk < 30; chunk += 1) held[0]?.write(CHUNK);
  held[0]?.end();
  assert.equal((await (await reader).arrayBuffer()).byteLength, 30 * CHUNK.length);
  assert.equal((await (await unread).arrayBuffer()).byteLength, 30 * CHUNK.length);
  assert.equal(server.requests.length, 1);
});

test("an answer that grows too long to keep streams on to the first one, and the others ask for themselves", async t => {
  const { held, hub, server, arrived } = await slow(t);
  const answers = [hub.fetch(server.origin), hub.fetch(server.origin)];
  await arrived(1);
  await new Promise(resolve => setImmediate(resolve));
  const send = (response: ServerResponse | undefined) => {
    response?.setHeader("cache-control", "max-age=60");
    for (let chunk = 0; chunk < 100; chunk += 1) response?.write(CHUNK);
    response?.end();
  };
  send(held[0]);
  const first = (await answers[0])?.arrayBuffer();
  await arrived(2);
  send(held[1]);
  const second = (await answers[1])?.arrayBuffer();
  assert.deepEqual(
    (await Promise.all([first, second])).map(body => body?.byteLength),
    [100 * CHUNK.length, 100 * CHUNK.length],
  );
});
