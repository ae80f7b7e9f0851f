import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLeft, type Handler, hubFor, only, recordEvents, serve, until } from "../../../test/http/kit.ts";
import { parseRange, resolveRange } from "../../core/cache/byte-range.ts";
import { FakeTime } from "../../testing/fake-time.ts";

const TEXT = "0123456789";

/** A server that supports ranges, as RFC 9110 says. `state` may change between requests. */
function ranged(state: { text: string; etag: string; ignoresIfRange?: boolean }): Handler {
  return (request, response) => {
    const { text, etag } = state;
    response.setHeader("etag", etag).setHeader("cache-control", "max-age=60").setHeader("accept-ranges", "bytes");
    if (request.headers["if-none-match"] === etag) return response.writeHead(304).end();
    const ifRange = request.headers["if-range"];
    const isMet = ifRange === undefined || ifRange === etag || state.ignoresIfRange;
    const range = isMet ? parseRange(request.headers["range"]) : undefined;
    if (range === undefined) return response.end(text);
    const part = resolveRange(range, text.length);
    if (part === undefined) return response.writeHead(416, { "content-range": `bytes */${text.length}` }).end();
    response.writeHead(206, { "content-range": `bytes ${part.start}-${part.end - 1}/${text.length}` });
    return response.end(text.slice(part.start, part.end));
  };
}

async function world(t: Parameters<typeof serve>[0], state: Parameters<typeof ranged>[0], cache?: `sqlite:${string}`) {
  const time = new FakeTime();
  const server = await serve(t, ranged(state));
  const hub = await hubFor(t, { time, retry: false, cache });
  const events = recordEvents(hub);
  const get = async (range?: string) => {
    const response = await hub.fetch(server.origin, range === undefined ? {} : { headers: { range } });
    return [response.status, await response.text(), response.headers.get("cache-status")] as const;
  };
  const ranges = () => server.requests.map(({ headers }) => headers["range"]);
  return { time, server, hub, get, ranges, events };
}

const MISS = "docstokg; fwd=miss";
const HIT = "docstokg; hit";

test("ranges are served from a stored complete response, without a request", async t => {
  const { get, server, hub } = await world(t, { text: TEXT, etag: '"a"' });
  await get();
  assert.deepEqual(await get("bytes=2-4"), [206, "234", HIT]);
  assert.deepEqual(await get("bytes=-1"), [206, "9", HIT]);
  assert.deepEqual(await get("bytes=20-"), [416, "", HIT]);
  assert.deepEqual(await get("bytes=0-1,3-4"), [200, TEXT, null]);
  assert.equal(server.requests.length, 2);
  assertNothingLeft(hub);
});

test("a stale complete response is revalidated before a range of it is served", async t => {
  const { get, time, events, ranges } = await world(t, { text: TEXT, etag: '"a"' });
  await get();
  await time.advance(61_000);
  assert.deepEqual(await get("bytes=2-4"), [206, "234", "docstokg; fwd=stale; fwd-status=304"]);
  assert.equal(only(events, "http_request").at(-1)?.revalidated, true);
  assert.deepEqual(ranges(), [undefined, "bytes=2-4"]);
  assert.deepEqual(await get(), [200, TEXT, HIT]);
});

test("parts are stored, serve smaller ranges, and join until the response is complete", async t => {
  const { get, ranges } = await world(t, { text: TEXT, etag: '"a"' });
  assert.deepEqual(await get("bytes=4-7"), [206, "4567", MISS]);
  assert.deepEqual(await get("bytes=5-6"), [206, "56", HIT]);
  assert.deepEqual(await get("bytes=6-9"), [206, "6789", MISS]);
  assert.deepEqual(await get("bytes=-6"), [206, "456789", HIT]);
  assert.deepEqual(await get("bytes=0-3"), [206, "0123", MISS]);
  assert.deepEqual(await get(), [200, TEXT, HIT]);
  assert.deepEqual(ranges(), ["bytes=4-7", "bytes=6-9", "bytes=0-3"]);
});

test("a response whose beginning is stored is completed by a request for the rest", async t => {
  const { get, server, hub } = await world(t, { text: TEXT, etag: '"a"' });
  await get("bytes=0-3");
  assert.deepEqual(await get(), [200, TEXT, MISS]);
  const { range, "if-range": ifRange } = server.requests[1]?.headers ?? {};
  assert.deepEqual([range, ifRange], ["bytes=4-", '"a"']);
  assert.deepEqual(await get(), [200, TEXT, HIT]);
  assert.equal(server.requests.length, 2);
  assertNothingLeft(hub);
});

test("a changed representation is never joined with an old part", async t => {
  for (const ignoresIfRange of [false, true]) {
    const state = { text: TEXT, etag: '"a"', ignoresIfRange };
    const { get, ranges } = await world(t, state);
    await get("bytes=0-3");
    Object.assign(state, { text: "abcdefghij", etag: '"b"' });
    assert.deepEqual(await get(), [200, "abcdefghij", MISS]);
    // A server that ignores If-Range sends a part of no use, and the request is sent again for all bytes.
    assert.deepEqual(ranges(), ["bytes=0-3", "bytes=4-", ...(ignoresIfRange ? [undefined] : [])]);
    assert.deepEqual(await get(), [200, "abcdefghij", HIT]);
  }
});

test("a representation that became shorter is requested again in full", async t => {
  const state = { text: TEXT, etag: '"a"', ignoresIfRange: true };
  const { get, hub } = await world(t, state);
  await get("bytes=0-7");
  Object.assign(state, { text: "abc", etag: '"b"' });
  assert.deepEqual(await get(), [200, "abc", MISS]);
  assertNothingLeft(hub);
});

test("a part without a strong tag is not completed, because the rest could belong to other bytes", async t => {
  const { get, ranges } = await world(t, { text: TEXT, etag: 'W/"a"' });
  await get("bytes=0-3");
  assert.deepEqual(await get(), [200, TEXT, MISS]);
  assert.deepEqual(ranges(), ["bytes=0-3", undefined]);
});

for (const [what, rest] of [
  ["short", "567"],
  ["long", "56789+"],
] as const)
  test(`a completed response whose rest is too ${what} fails, is not stored, and is requested in full after that`, async t => {
    const server = await serve(t, (request, response) => {
      response.setHeader("etag", '"a"').setHeader("cache-control", "max-age=60");
      const range = parseRange(request.headers["range"]);
      if (range === undefined) return response.end(TEXT);
      const { start, end } = resolveRange(range, TEXT.length) ?? { start: 0, end: 0 };
      response.writeHead(206, { "content-range": `bytes ${start}-${end - 1}/${TEXT.length}` });
      // Sent in chunks, so that there is no Content-Length.
      response.flushHeaders();
      return response.end(start === 0 ? TEXT.slice(start, end) : rest);
    });
    const hub = await hubFor(t, { retry: false });
    const get = async (headers = {}) => (await hub.fetch(server.origin, { headers })).text();
    assert.equal(await get({ range: "bytes=0-4" }), "01234");
    await assert.rejects(get(), ({ cause }: Error) =>
      /sent a part whose length is not that of its Content-Range/.test(String(cause)),
    );
    assert.equal(await get(), TEXT);
    assert.equal(await get(), TEXT);
    assert.deepEqual(
      server.requests.map(({ headers }) => headers["range"]),
      ["bytes=0-4", "bytes=5-", undefined],
    );
    assertNothingLeft(hub);
  });

for (const etag of ['"a"', undefined])
  test(`ranges of a response within stale-while-revalidate cause one request, for all bytes (etag ${etag})`, async t => {
    const time = new FakeTime();
    let text = TEXT;
    const server = await serve(t, (request, response) => {
      response.setHeader("cache-control", "max-age=60, stale-while-revalidate=600");
      if (etag !== undefined) response.setHeader("etag", text === TEXT ? etag : '"b"');
      const range = resolveRange(parseRange(request.headers["range"]) ?? { kind: "suffix", count: 0 }, text.length);
      if (range === undefined) return response.end(text);
      response.writeHead(206, { "content-range": `bytes ${range.start}-${range.end - 1}/${text.length}` });
      return response.end(text.slice(range.start, range.end));
    });
    const hub = await hubFor(t, { time, retry: false });
    const get = async (range: string) => (await hub.fetch(server.origin, { headers: { range } })).text();
    await (await hub.fetch(server.origin)).text();
    await time.advance(61_000);
    text = "abcdefghij";
    assert.deepEqual(await Promise.all([get("bytes=0-2"), get("bytes=3-5")]), ["012", "345"]);
    await until(() => server.requests.length > 1 && hub.snapshot().inFlight === 0);
    assert.deepEqual([await get("bytes=0-2"), await get("bytes=7-9")], ["abc", "hij"]);
    assert.deepEqual(
      server.requests.map(({ headers }) => headers["range"]),
      [undefined, undefined],
    );
    assertNothingLeft(hub, time);
  });
