import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { heldServer, hubFor, serve, until } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import type { Hub } from "../hub.ts";

test("the Cache-Status of caches on the way comes before the hub's own", async t => {
  const server = await serve(t, (_, response) =>
    response.setHeader("cache-status", ["one; hit", "two; fwd=uri-miss"]).end(),
  );
  const hub = await hubFor(t);
  const { headers } = await hub.fetch(server.origin);
  assert.equal(headers.get("cache-status"), "one; hit, two; fwd=uri-miss, docstokg; fwd=miss");
});

const BODY = "a".repeat(10_000);

/** Reads the body and changes its bytes, as a caller may that decodes it in place. */
async function readAndChange(response: ReturnType<Hub["request"]>): Promise<string> {
  let text = "";
  for await (const chunk of (await response).body) {
    text += chunk.toString();
    chunk.fill("z");
  }
  return text;
}

for (const cache of ["memory", "sqlite"] as const)
  test(`a caller that changes the bytes of a response does not change what the ${cache} cache has stored`, async t => {
    const server = await serve(t, (request, response) => {
      response
        .setHeader("cache-control", request.url === "/stale" ? "no-cache" : "max-age=60")
        .setHeader("etag", '"1"');
      if (request.headers["if-none-match"] !== undefined) response.writeHead(304).end();
      else response.end(BODY);
    });
    const hub = await hubFor(
      t,
      cache === "memory" ? {} : { cache: `sqlite:${join(temporaryFolder("cache"), "c.db")}` },
    );
    for (const path of ["/", "/stale"])
      for (let count = 1; count <= 3; count += 1)
        assert.equal(await readAndChange(hub.request(server.origin + path)), BODY, `request ${count} for ${path}`);
  });

test("a caller that changes the bytes of a shared response changes them for no other caller", async t => {
  const { held, server, hub, arrived } = await heldServer(t);
  const answers = [1, 2, 3].map(() => readAndChange(hub.request(server.origin)));
  await arrived(1);
  await until(() => hub.snapshot().calls === 3);
  held[0]?.setHeader("cache-control", "max-age=0").setHeader("etag", '"1"').end(BODY);
  assert.deepEqual(await Promise.all(answers), [BODY, BODY, BODY]);
  const again = [1, 2, 3].map(() => readAndChange(hub.request(server.origin)));
  await arrived(2);
  await until(() => hub.snapshot().calls === 3);
  held[1]?.writeHead(304).end();
  assert.deepEqual(await Promise.all(again), [BODY, BODY, BODY]);
});

test("a caller may transfer the bytes of a stored response, and later callers get it", async t => {
  // Shorter copies are in a pool of Node, whose buffer cannot be transferred.
  const long = BODY.repeat(20);
  const server = await serve(t, (_, response) => response.setHeader("cache-control", "max-age=60").end(long));
  const hub = await hubFor(t);
  await (await hub.request(server.origin)).body.text();
  for (let count = 1; count <= 2; count += 1) {
    const chunks: Buffer<ArrayBuffer>[] = [];
    for await (const chunk of (await hub.request(server.origin)).body) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), long);
    for (const { buffer } of chunks) structuredClone(buffer, { transfer: [buffer] });
  }
});

test("a caller that changes the beginning of a completed response does not change the stored part", async t => {
  const server = await serve(t, (request, response) => {
    const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? "") ?? [];
    const [start, end] = [Number(from), to ? Number(to) + 1 : BODY.length];
    response.writeHead(206, {
      "cache-control": "max-age=60",
      etag: '"1"',
      "content-range": `bytes ${start}-${end - 1}/${BODY.length}`,
    });
    if (to) response.end(BODY.slice(start, end));
    else response.flushHeaders();
  });
  const hub = await hubFor(t, { retry: false });
  const part = () => hub.request(server.origin, { headers: { range: "bytes=0-5999" } });
  await (await part()).body.text();
  const controller = new AbortController();
  const { body } = await hub.request(server.origin, { signal: controller.signal });
  for await (const chunk of body) {
    chunk.fill("z");
    break;
  }
  controller.abort();
  assert.equal(await (await part()).body.text(), BODY.slice(0, 6000));
});

test("a caller that changes the bytes of the 504 for a response that is not cached changes them for no other", async t => {
  const hub = await hubFor(t);
  const get = () => readAndChange(hub.request("http://example.org", { offline: true }));
  assert.equal(await get(), await get());
});

for (const method of ["GET", "POST"] as const)
  test(`a caller that changes the response to a ${method} while it arrives does not change what is stored`, async t => {
    const { held, server, hub, arrived } = await heldServer(t);
    const first = hub.request(server.origin, { method });
    await arrived(1);
    const shared = method === "GET" ? [hub.request(server.origin)] : [];
    await until(() => hub.snapshot().calls === 1 + shared.length);
    held[0]?.writeHead(200, { "cache-control": "max-age=60", "content-location": "/" }).write(BODY);
    let text = "";
    for await (const chunk of (await first).body) {
      text += chunk.toString();
      chunk.fill("z");
      held[0]?.end();
    }
    assert.equal(text, BODY);
    for (const response of [...shared, hub.request(server.origin)])
      assert.equal(await (await response).body.text(), BODY);
    assert.equal(server.requests.length, 1);
  });

for (const method of ["GET", "POST"] as const)
  test(`a caller that changes the headers of the response to a ${method} changes them for no other`, async t => {
    const { held, server, hub, arrived } = await heldServer(t);
    const first = hub.request(server.origin, { method });
    await arrived(1);
    const shared = method === "GET" ? [hub.request(server.origin), hub.request(server.origin)] : [];
    await until(() => hub.snapshot().calls === 1 + shared.length);
    const fields = { "cache-control": "max-age=60", "content-location": "/", "set-cookie": ["a=1", "b=2"] };
    held[0]?.writeHead(200, fields).write(BODY);
    const change = (headers: Record<string, string | string[] | undefined>) => {
      assert.deepEqual(headers["set-cookie"], ["a=1", "b=2"]);
      assert.equal(headers["cache-control"], "max-age=60");
      assert.ok(Array.isArray(headers["set-cookie"]));
      headers["set-cookie"].pop();
      headers["cache-control"] = "no-store";
    };
    const { headers, body } = await first;
    change(headers);
    held[0]?.end();
    await body.text();
    for (const response of [...shared, hub.request(server.origin), hub.request(server.origin)]) {
      const { headers, body } = await response;
      change(headers);
      await body.text();
    }
    assert.equal(server.requests.length, 1);
  });
