import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { heldServer, hubFor, serve, type TestHubOptions, until } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { FetchOptions } from "../hub.ts";

/** Two requests of one URL in flight, the first a second older. Header `x-caller` keeps them from being coalesced. */
async function twoInFlight(t: TestContext, options: TestHubOptions = {}) {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, ...options });
  const get = async (init: FetchOptions = {}) => {
    const response = await hub.fetch(server.origin, init);
    return [await response.text(), response.headers.get("cache-status")];
  };
  const older = get({ headers: { "x-caller": "1" } });
  await arrived(1);
  await time.advance(1000);
  const newer = get({ headers: { "x-caller": "2" } });
  await arrived(2);
  const answer = (number: number, body: string) => held[number]?.setHeader("cache-control", "max-age=60").end(body);
  return { time, server, get, older, newer, answer };
}

for (const cache of ["memory", `sqlite:${join(temporaryFolder("cache"), "order.db")}`] as const)
  test(`an older response that ends later does not replace a newer one (${cache.slice(0, 6)})`, async t => {
    const { get, older, newer, answer, server } = await twoInFlight(t, { cache });
    answer(1, "newer");
    await newer;
    answer(0, "older");
    assert.deepEqual(await older, ["older", "docstokg; fwd=miss"]);
    assert.deepEqual(await get(), ["newer", "docstokg; hit"]);
    assert.equal(server.requests.length, 2);
  });

test("an older response that ends later replaces one of a clock that was ahead", async t => {
  const { time, get, older, newer, answer } = await twoInFlight(t);
  answer(1, "newer");
  await newer;
  time.stepWall(-3_600_000);
  answer(0, "older");
  await older;
  assert.deepEqual(await get(), ["older", "docstokg; hit"]);
});

test("an older part that ends later is joined with a newer one of the same representation", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time });
  const get = async (headers = {}) => (await hub.fetch(server.origin, { headers })).text();
  const first = get({ range: "bytes=0-4" });
  await arrived(1);
  await time.advance(1000);
  const second = get({ range: "bytes=5-9" });
  await arrived(2);
  const fields = { "cache-control": "max-age=60", etag: '"a"' };
  held[1]?.writeHead(206, { ...fields, "content-range": "bytes 5-9/10" }).end("56789");
  await second;
  held[0]?.writeHead(206, { ...fields, "content-range": "bytes 0-4/10" }).end("01234");
  await first;
  assert.equal(await get(), "0123456789");
  assert.equal(server.requests.length, 2);
});

test("after a newer response that could not be written, the older one is not served", async t => {
  const file = join(temporaryFolder("cache"), "full.db");
  const server = await serve(t, (_, response, number) =>
    response.setHeader("cache-control", "max-age=60").end(`${number}`),
  );
  const hub = await hubFor(t, { cache: `sqlite:${file}` });
  const troubles: string[] = [];
  hub.listen(event => void (event.event_type === "cache_trouble" && troubles.push(event.message)));
  const get = async (path: string, init: FetchOptions = {}) =>
    (await hub.fetch(`${server.origin}${path}`, init)).text();
  await get("/a");
  await get("/b");
  const other = new DatabaseSync(file);
  other.exec("CREATE TRIGGER full BEFORE INSERT ON responses BEGIN SELECT RAISE(FAIL, 'the disk is full'); END");
  // The write of this response fails, and suspends writing.
  assert.equal(await get("/a", { cache: "reload" }), "3");
  await until(() => troubles.length === 1);
  assert.equal(await get("/a"), "4");
  // While writing is suspended.
  assert.equal(await get("/b", { cache: "reload" }), "5");
  assert.equal(await get("/b"), "6");
  other.close();
});
