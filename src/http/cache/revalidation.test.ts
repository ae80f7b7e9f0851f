import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { assertNothingLeft, type Handler, heldServer, hubFor, serve, until } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { FetchOptions } from "../hub.ts";

const OLD = "Sun, 06 Nov 1994 08:49:37 GMT";

/** `cache` is "memory" or "sqlite". */
async function world(t: TestContext, handler: Handler, cache = "memory") {
  const time = new FakeTime();
  const server = await serve(t, handler);
  const file = join(temporaryFolder("cache"), "cache.db");
  const hub = await hubFor(t, { time, retry: false, cache: cache === "memory" ? "memory" : `sqlite:${file}` });
  const get = async (language = "en", method = "GET") => {
    const response = await hub.fetch(server.origin, { method, headers: { "accept-language": language } });
    return [await response.text(), response.headers.get("cache-status")];
  };
  return { time, server, hub, get };
}

const HIT = "docstokg; hit";
const MISS = "docstokg; fwd=miss";
const REVALIDATED = "docstokg; fwd=stale; fwd-status=304";

for (const cache of ["memory", "sqlite"])
  for (const [name, value] of [
    ["cache-control", "no-store"],
    ["vary", "*"],
  ] as const)
    for (const method of ["GET", "HEAD"])
      test(`a 304 to a ${method} with ${name}: ${value} removes the stored response (${cache})`, async t => {
        const { time, server, get } = await world(
          t,
          (request, response, number) => {
            response.setHeader("cache-control", "max-age=1").setHeader("etag", '"1"').setHeader("last-modified", OLD);
            if (number > 1) response.setHeader(name, value);
            if (request.headers["if-none-match"] === '"1"') response.writeHead(304).end();
            else response.end("one");
          },
          cache,
        );
        await get();
        await time.advance(2000);
        assert.deepEqual(await get("en", method), [method === "HEAD" ? "" : "one", REVALIDATED]);
        assert.deepEqual(await get(), ["one", MISS]);
        assert.deepEqual(await get(), ["one", MISS]);
        assert.equal(server.requests.length, 4);
      });

for (const cache of ["memory", "sqlite"])
  test(`a 304 that adds a Vary separates the requests from then on (${cache})`, async t => {
    const { time, get } = await world(
      t,
      (request, response, number) => {
        const language = String(request.headers["accept-language"]);
        response.setHeader("cache-control", "max-age=10").setHeader("etag", `"${language}"`);
        if (number > 1) response.setHeader("vary", "accept-language");
        if (request.headers["if-none-match"] === `"${language}"`) response.writeHead(304).end();
        else response.end(language);
      },
      cache,
    );
    await get("en");
    await time.advance(10_000);
    assert.deepEqual(await get("en"), ["en", REVALIDATED]);
    assert.deepEqual(await get("de"), ["de", MISS]);
    assert.deepEqual(await get("en"), ["en", HIT]);
    assert.deepEqual(await get("de"), ["de", HIT]);
  });

test("callers that wait for a 304 with no-store are sent on their own", async t => {
  const { time, server, hub, get } = await world(t, (request, response, number) => {
    response.setHeader("etag", '"1"').setHeader("cache-control", number === 1 ? "max-age=1" : "no-store");
    // The 304 comes when all callers wait for it.
    if (request.headers["if-none-match"] === undefined) response.end(`body ${number}`);
    else void until(() => hub.snapshot().calls === 3).then(() => response.writeHead(304).end());
  });
  await get();
  await time.advance(2000);
  const [first, ...others] = await Promise.all([get(), get(), get()]);
  assert.deepEqual(first, ["body 1", REVALIDATED]);
  assert.deepEqual(new Set(others.map(([body]) => body)), new Set(["body 3", "body 4"]));
  assert.equal(server.requests.length, 4);
  assertNothingLeft(hub, time);
});

test("a stored head to which each 304 adds a field does not grow without limit", async t => {
  const { server, get } = await world(t, (request, response, number) => {
    response.setHeader("cache-control", "no-cache").setHeader("etag", '"1"').setHeader(`x-${number}`, "x".repeat(8000));
    if (request.headers["if-none-match"] === '"1"') response.writeHead(304).end();
    else response.end("body");
  });
  for (let count = 1; count <= 10; count += 1) assert.equal((await get())[0], "body");
  // The eighth 304 makes the head too long.
  assert.deepEqual(
    server.requests.map(({ headers }) => headers["if-none-match"] !== undefined),
    [false, true, true, true, true, true, true, true, true, false],
  );
});

test("a 304 to a request before a write changes nothing that was stored after it, also within one millisecond", async t => {
  const { held, server, hub, arrived } = await heldServer(t, { time: new FakeTime() });
  const send = async (init: FetchOptions = {}) => {
    const response = await hub.fetch(server.origin, init);
    return [await response.text(), response.headers.get("etag")];
  };
  const answer = async (number: number, status: number, version: string) => {
    await arrived(number);
    const fields = { "cache-control": "max-age=60", etag: `"${version}"` };
    held[number - 1]?.writeHead(status, fields).end(status === 200 ? version : undefined);
  };
  const first = send();
  await answer(1, 200, "one");
  await first;
  const confirmed = send({ cache: "no-cache" });
  await arrived(2);
  const written = send({ method: "PUT" });
  await answer(3, 204, "two");
  await written;
  const second = send();
  await answer(4, 200, "two");
  await second;
  held[1]?.writeHead(304, { etag: '"one"', "cache-control": "max-age=600" }).end();
  assert.deepEqual(await confirmed, ["one", '"one"']);
  assert.deepEqual(await send(), ["two", '"two"']);
  assert.equal(server.requests.length, 4);
});

test("a 304 for a part changes no other part that was stored meanwhile, also within one millisecond", async t => {
  const { held, server, hub, arrived } = await heldServer(t, { time: new FakeTime() });
  const get = async (range: string) => (await hub.fetch(server.origin, { headers: { range } })).text();
  const answer = (number: number, range: string, body: string) => {
    const fields = { "cache-control": "max-age=0", etag: 'W/"1"', "content-range": `bytes ${range}/40` };
    held[number - 1]?.writeHead(206, fields).end(body);
  };
  const first = get("bytes=5-9");
  await arrived(1);
  answer(1, "5-9", "56789");
  await first;
  const other = get("bytes=0-4");
  await arrived(2);
  const confirmed = get("bytes=5-9");
  await arrived(3);
  answer(2, "0-4", "01234");
  await other;
  held[2]?.writeHead(304, { etag: 'W/"1"', "cache-control": "max-age=60" }).end();
  assert.equal(await confirmed, "56789");
  const again = get("bytes=5-9");
  await arrived(4);
  answer(4, "5-9", "56789");
  assert.equal(await again, "56789");
});
