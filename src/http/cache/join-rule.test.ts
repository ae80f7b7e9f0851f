import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import {
  assertNothingLeft,
  type Handler,
  heldServer,
  hubFor,
  only,
  recordEvents,
  serve,
  settles,
  until,
} from "../../../test/http/kit.ts";
import { RateLimitExceeded } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { CallOptions } from "../call-options.ts";

/** Options that decide what becomes of a response: two calls that differ in one of them are two requests. */
const KEY_OPTIONS: Readonly<Record<string, CallOptions>> = {
  cacheLifetimeMs: { cacheLifetimeMs: 60_000 },
  staleOnDisconnect: { staleOnDisconnect: true },
  idempotent: { idempotent: false },
  resolver: { resolver: "other" },
};

for (const [name, options] of Object.entries(KEY_OPTIONS))
  test(`a call does not join a request that differs in ${name}, and joins one that does not`, async t => {
    const { held, get, arrived, hub } = await heldServer(t);
    const answers = [get(), get(options), get(), get(options)];
    await arrived(2);
    await until(() => hub.snapshot().calls === 4);
    for (const response of held) response.setHeader("cache-control", "max-age=60").end("body");
    assert.deepEqual(await Promise.all(answers), Array(4).fill("body"));
    assert.equal(held.length, 2);
  });

for (const timeout of ["headersTimeout", "bodyTimeout"] as const)
  test(`a call does not join a request with another ${timeout}, and joins one with the same`, async t => {
    const { held, server, arrived, hub } = await heldServer(t);
    const calls = [{}, { [timeout]: 30_000 }, {}, { [timeout]: 30_000 }, { [timeout]: 40_000 }];
    const answers = calls.map(async options => (await hub.request(server.origin, options)).body.text());
    await arrived(3);
    await until(() => hub.snapshot().calls === 5);
    for (const response of held) response.setHeader("cache-control", "max-age=60").end("body");
    assert.deepEqual(await Promise.all(answers), Array(5).fill("body"));
    assert.equal(held.length, 3);
  });

test("a call does not join a request whose responses are judged by another function", async t => {
  const { held, get, arrived } = await heldServer(t);
  const answers = [get(), get({ outcome: () => "success" })];
  await arrived(2);
  for (const response of held) response.setHeader("cache-control", "max-age=60").end("body");
  assert.deepEqual(await Promise.all(answers), ["body", "body"]);
});

/** A server that holds its first response, a leader with this deadline whose request was sent, and then a follower. */
async function leaderWithDeadline(t: TestContext, deadlineMs: number, later: Handler) {
  const time = new FakeTime();
  const held: ServerResponse[] = [];
  const server = await serve(t, (request, response, number) =>
    number === 1 ? void held.push(response) : later(request, response, number),
  );
  const hub = await hubFor(t, { time, random: () => 0, retry: { attempts: 3 } });
  const events = recordEvents(hub);
  const get = async (options: CallOptions) => {
    const response = await hub.fetch(server.origin, options);
    return `${response.status} ${await response.text()}`;
  };
  const leader = get({ deadlineMs });
  await until(() => held.length === 1);
  const follower = get({});
  await until(() => hub.snapshot().calls === 2);
  return { time, events, leader, follower, first: held[0] as ServerResponse };
}

test("a call does not join a request whose deadline leaves no time for Retry-After", async t => {
  const { time, events, leader, follower, first } = await leaderWithDeadline(t, 300, (_, response, number) =>
    number === 2 ? response.writeHead(429, { "retry-after": "1" }).end() : response.end("good"),
  );
  first.writeHead(429, { "retry-after": "1" }).end();
  assert.equal(await leader, "429 ");
  await until(() => only(events, "http_retry").length === 1);
  await time.advance(1000);
  assert.equal(await settles(follower), "200 good");
});

test("a call that came after one with an earlier deadline does not get the late failure of the other", async t => {
  const { time, leader, follower, first } = await leaderWithDeadline(t, 100, (_, response) => response.end("good"));
  const failed = assert.rejects(leader, { name: "DeadlineExceededError" });
  await time.advance(100);
  await failed;
  if (!first.destroyed) first.writeHead(503).end();
  assert.equal(await settles(follower), "200 good");
});

test("a call joins a request with a later deadline or the same deadlineMs", async t => {
  const { held, get, arrived, hub, server } = await heldServer(t, { time: new FakeTime() });
  const answers = [get({ deadlineMs: 5000 }), get({ deadlineMs: 5000 })];
  await arrived(1);
  answers.push(get({ deadlineMs: 200 }));
  await until(() => hub.snapshot().calls === 3);
  held[0]?.setHeader("cache-control", "max-age=60").end("once");
  assert.deepEqual(await Promise.all(answers), ["once", "once", "once"]);
  assert.equal(server.requests.length, 1);
});

test("all callers that share a stale response see that it is stale", async t => {
  const time = new FakeTime();
  const failing: Handler = (_, response, number) =>
    number === 1
      ? response.setHeader("cache-control", "max-age=1, stale-if-error=600").end("stored")
      : response.writeHead(500).end();
  const server = await serve(t, failing);
  const hub = await hubFor(t, { time, retry: false });
  const events = recordEvents(hub);
  const get = async () => {
    const response = await hub.fetch(server.origin);
    return `${await response.text()}: ${response.headers.get("cache-status")}`;
  };
  await get();
  await time.advance(2000);
  assert.deepEqual(await Promise.all([get(), get()]), Array(2).fill("stored: docstokg; hit; detail=stale"));
  assert.equal(server.requests.length, 2);
  assert.deepEqual(
    only(events, "http_request").map(({ stale }) => stale),
    [false, true, true],
  );
});

test("a response that could not be shared switches coalescing off only until one can be shared", async t => {
  const { held, get, arrived, hub } = await heldServer(t);
  const first = get();
  await arrived(1);
  held[0]?.setHeader("cache-control", "no-store").end("0");
  await first;
  const alone = [get(), get()];
  await arrived(3);
  for (const response of held.slice(1))
    response.setHeader("cache-control", "max-age=0").setHeader("etag", '"1"').end("1");
  await Promise.all(alone);
  const shared = [get(), get()];
  await arrived(4);
  await until(() => hub.snapshot().calls === 2);
  held[3]?.setHeader("cache-control", "max-age=60").end("2");
  assert.deepEqual(await Promise.all(shared), ["2", "2"]);
  assert.equal(held.length, 4);
});

test("a call that joined a sent request is refused when the request must wait for a retry longer than the call allows", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    retry: { attempts: 3, baseMs: 1 },
    limits: { defaults: { metadata: { rates: "1/5SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const get = (maxWaitMs?: number) => hub.request(server.origin, { maxWaitMs });
  const leader = get(Number.POSITIVE_INFINITY);
  await arrived(1);
  const refused = assert.rejects(get(0), RateLimitExceeded);
  const soon = assert.rejects(get(2000), RateLimitExceeded);
  const longer = get(20_000);
  const endless = get(Number.POSITIVE_INFINITY);
  // Its own retry could wait until its deadline.
  const plain = get();
  await until(() => hub.snapshot().calls === 6);
  held[0]?.writeHead(500).end("down");
  await until(() => time.armedTimers > 0);
  await time.advance(10);
  await settles(Promise.all([refused, soon]));
  for (const count of [2, 3, 4]) {
    await time.advance(5000);
    await arrived(count);
    held[count - 1]?.setHeader("cache-control", "max-age=60").end(`answer ${count}`);
    await until(() => hub.snapshot().inFlight === 0);
  }
  const texts = await Promise.all([leader, endless, longer, plain].map(async call => (await call).body.text()));
  assert.deepEqual(texts, ["answer 2", "answer 2", "answer 3", "answer 4"]);
});

test("a follower that leads a request since its caller aborted is refused when a retry must wait too long for it", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    retry: { attempts: 3, baseMs: 1 },
    limits: { defaults: { metadata: { rates: "1/5SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const controller = new AbortController();
  const first = hub.request(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY, signal: controller.signal });
  await arrived(1);
  const refused = assert.rejects(hub.request(server.origin, { maxWaitMs: 0 }), RateLimitExceeded);
  await until(() => hub.snapshot().calls === 2);
  controller.abort();
  await assert.rejects(first, { name: "AbortError" });
  held[0]?.writeHead(500).end("down");
  await until(() => time.armedTimers > 0);
  await time.advance(10);
  await settles(refused);
  assertNothingLeft(hub, time);
  assert.equal(server.requests.length, 1);
});

/** A stored response, 3 s old, and a server that holds the responses to later requests. */
async function storedResponse(t: TestContext, control: string) {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, retry: { attempts: 2, baseMs: 1 } });
  const get = async () => {
    const response = await hub.fetch(server.origin);
    return `${response.status} ${await response.text()}`;
  };
  const first = get();
  await arrived(1);
  held[0]?.writeHead(200, { "cache-control": control, etag: '"one"' }).end("old");
  await first;
  await time.advance(3000);
  return { time, held, server, hub, get, arrived };
}

for (const [how, fail] of [
  ["a server error", (response: ServerResponse) => response.writeHead(500).end("failed")],
  ["a broken connection", (response: ServerResponse) => response.socket?.resetAndDestroy()],
] as const)
  test(`after the time of stale-while-revalidate, a call that shares the refresh gets no stale response for ${how}`, async t => {
    const control = "max-age=1, stale-while-revalidate=4";
    const { time, held, hub, get, arrived } = await storedResponse(t, control);
    assert.equal(await get(), "200 old");
    await arrived(2);
    await time.advance(4000);
    const late = [get(), get()];
    await until(() => hub.snapshot().calls === 2);
    fail(held[1] as ServerResponse);
    await arrived(3);
    held[2]?.setHeader("cache-control", "max-age=60").end("new");
    assert.deepEqual(await Promise.all(late), ["200 new", "200 new"]);
    assert.equal(held.length, 3, "they share a request again");
    assertNothingLeft(hub, time);
  });

test("after the time of stale-while-revalidate, a call shares the success of the refresh", async t => {
  const { time, held, get, hub, arrived } = await storedResponse(t, "max-age=1, stale-while-revalidate=4");
  await get();
  await arrived(2);
  await time.advance(4000);
  const late = get();
  await until(() => hub.snapshot().calls === 1);
  held[1]?.writeHead(304).end();
  assert.equal(await late, "200 old");
  assert.equal(held.length, 2);
});

test("after the time of stale-if-error, a call gets no stale response that the caller before it still gets", async t => {
  const { time, held, get, hub, arrived } = await storedResponse(t, "max-age=1, stale-if-error=4");
  const within = get();
  await arrived(2);
  await time.advance(4000);
  const late = get();
  await until(() => hub.snapshot().calls === 2);
  held[1]?.writeHead(500).end("failed");
  assert.equal(await within, "200 old");
  await arrived(3);
  held[2]?.end("new");
  assert.equal(await late, "200 new");
});

test("a stored response is served to the callers that wait for a new one whose body breaks off, where it may be stale", async t => {
  const { held, get, hub, arrived } = await storedResponse(t, "max-age=1, stale-if-error=60");
  const calls = [get(), get(), get()];
  await arrived(2);
  await until(() => hub.snapshot().calls === 3);
  held[1]?.writeHead(200, { "cache-control": "max-age=60", "content-length": "100" }).write("half");
  await new Promise(resolve => setImmediate(resolve));
  held[1]?.destroy();
  await assert.rejects(settles(calls[0] as Promise<string>));
  assert.deepEqual(await Promise.all(calls.slice(1)), ["200 old", "200 old"]);
  assert.equal(held.length, 2);
});

test("a call that joined one with force-cache is sent again with its own cache mode", async t => {
  const { held, server, hub, arrived } = await heldServer(t);
  const get = async (init: Parameters<typeof hub.fetch>[1]) => (await hub.fetch(server.origin, init)).text();
  const forced = hub.fetch(server.origin, { cache: "force-cache" });
  await arrived(1);
  const plain = get({});
  await until(() => hub.snapshot().calls === 2);
  // Stored meanwhile: a stale response that a call with force-cache accepts, and any other must revalidate.
  const storing = get({ headers: { "x-other": "1" } });
  await arrived(2);
  held[1]?.writeHead(200, { "cache-control": "max-age=0", etag: '"1"' }).end("version 1");
  assert.equal(await storing, "version 1");
  held[0]?.writeHead(200, { "cache-control": "no-store" }).end("private");
  assert.equal(await (await forced).text(), "private");
  await arrived(3);
  assert.equal(server.requests[2]?.headers["if-none-match"], '"1"');
  held[2]?.writeHead(200, { "cache-control": "max-age=0", etag: '"2"' }).end("version 2");
  assert.equal(await plain, "version 2");
});

for (const [control, joinsMs] of [
  ["max-age=5", [0, 4999]],
  ["max-age=0", []],
  ["no-cache", []],
] as const)
  test(`a call joins a request whose head has arrived only while the response is fresh (${control})`, async t => {
    const time = new FakeTime();
    const { held, server, hub, arrived } = await heldServer(t, { time });
    const get = async () => (await hub.fetch(server.origin)).text();
    const first = hub.fetch(server.origin);
    const waiting = get();
    await arrived(1);
    held[0]?.setHeader("cache-control", control).setHeader("etag", '"1"').write("first");
    const leading = (await first).text();
    const joined: Promise<string>[] = [];
    let nowMs = 0;
    for (const atMs of joinsMs) {
      await time.advance(atMs - nowMs);
      nowMs = atMs;
      joined.push(get());
    }
    await time.advance(5000 - nowMs);
    const late = get();
    await arrived(2);
    held[1]?.setHeader("cache-control", control).setHeader("etag", '"2"').end("second");
    assert.equal(await late, "second");
    held[0]?.end();
    // A caller that has waited since before the head gets this response, however long its body takes.
    assert.deepEqual(await Promise.all([leading, waiting, ...joined]), [
      "first",
      "first",
      ...joined.map(() => "first"),
    ]);
    assert.equal(server.requests.length, 2);
  });
