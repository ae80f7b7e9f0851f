import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { hubFor, serve, until } from "../../../test/http/kit.ts";
import { Invalidations } from "./invalidations.ts";

test("a URL is invalidated for requests that began before the write, and for no others", () => {
  const invalidations = new Invalidations();
  const before = invalidations.count;
  invalidations.add("a");
  assert.equal(invalidations.isSince("a", before), true);
  assert.equal(invalidations.isSince("b", before), false);
  assert.equal(invalidations.isSince("a", invalidations.count), false);
  invalidations.add("a");
  assert.equal(invalidations.isSince("a", 1), true);
});

test("an invalidation that was forgotten counts for all URLs", () => {
  const invalidations = new Invalidations(2);
  for (const url of ["a", "b", "a", "c"]) invalidations.add(url);
  // That of b is forgotten: it is the oldest.
  assert.equal(invalidations.isSince("other", 1), true);
  assert.equal(invalidations.isSince("b", 1), true);
  assert.equal(invalidations.isSince("other", 2), false);
  assert.equal(invalidations.isSince("a", 2), true);
  assert.equal(invalidations.isSince("a", 3), false);
});

/** A server that holds the response of each GET. */
async function writableServer(t: TestContext) {
  const held: ServerResponse[] = [];
  const server = await serve(t, (request, response) => {
    response.setHeader("cache-control", "max-age=600");
    if (request.method === "GET") held.push(response);
    else response.setHeader("content-location", request.url ?? "").end(request.method);
  });
  const hub = await hubFor(t, { retry: false });
  const get = async () => (await hub.fetch(server.origin)).text();
  const write = async (method: string, path = "/") =>
    (await hub.fetch(`${server.origin}${path}`, { method, body: "new" })).text();
  const arrived = (count: number) => until(() => held.length === count);
  return { held, server, hub, get, write, arrived };
}

for (const method of ["PUT", "DELETE", "PATCH"])
  test(`a request after a ${method} neither joins an older request nor gets its response from the cache`, async t => {
    const { held, hub, get, write, arrived } = await writableServer(t);
    const older = [get(), get()];
    await arrived(1);
    await write(method);
    const newer = [get(), get()];
    await arrived(2);
    await until(() => hub.snapshot().calls === 4);
    held[1]?.end("new");
    assert.deepEqual(await Promise.all(newer), ["new", "new"]);
    held[0]?.end("old");
    assert.deepEqual(await Promise.all(older), ["old", "old"], "requests that share a response still do");
    assert.equal(await get(), "new");
    assert.equal(held.length, 2);
  });

test("the response of a request before a write is not stored when it comes first", async t => {
  const { held, hub, get, write, arrived } = await writableServer(t);
  const older = get();
  await arrived(1);
  await write("PUT");
  held[0]?.end("old");
  assert.equal(await older, "old");
  assert.equal(hub.snapshot().cache?.entries, 0);
});

test("a write to another URL leaves a request in flight alone", async t => {
  const { held, hub, get, write, arrived } = await writableServer(t);
  const answers = [get()];
  await arrived(1);
  await write("PUT", "/other");
  answers.push(get());
  await until(() => hub.snapshot().calls === 2);
  held[0]?.end("same");
  assert.deepEqual(await Promise.all(answers), ["same", "same"]);
  assert.equal(await get(), "same");
});

test("the response of a POST that is also the one of a GET is stored, unless a later write came first", async t => {
  const held: ServerResponse[] = [];
  const server = await serve(t, (request, response) => {
    if (request.method !== "POST") return void response.end("current");
    response.writeHead(200, { "cache-control": "max-age=600", "content-location": "/" }).write("po");
    held.push(response);
  });
  const hub = await hubFor(t, { retry: false });
  const send = async (method: string) => await hub.fetch(server.origin, { method });
  const first = await send("POST");
  held[0]?.end("st");
  assert.equal(await first.text(), "post");
  assert.equal(await (await send("GET")).text(), "post");
  const second = await send("POST");
  await (await send("PUT")).text();
  held[1]?.end("st");
  assert.equal(await second.text(), "post");
  assert.equal(await (await send("GET")).text(), "current");
});
