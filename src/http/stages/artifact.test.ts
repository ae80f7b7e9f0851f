import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { hubFor, serve } from "../../../test/http/kit.ts";

test("an artifact without compression gets no x-content-encoding header", async t => {
  const server = await serve(t, (request, response) =>
    response.writeHead(200, request.url === "/plain" ? {} : { "content-encoding": "identity" }).end("bytes"),
  );
  const hub = await hubFor(t);
  for (const path of ["/plain", "/identity"]) {
    const { headers } = await hub.fetch(`${server.origin}${path}`, { role: "artifact" });
    assert.equal(headers.has("x-content-encoding"), false);
  }
});

test("artifacts are requested and delivered without compression; other responses may be compressed", async t => {
  const packed = gzipSync("hello");
  const server = await serve(t, (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(packed));
  const hub = await hubFor(t);
  const artifact = await hub.fetch(server.origin, { role: "artifact" });
  assert.deepEqual(Buffer.from(await artifact.arrayBuffer()), packed);
  assert.equal(artifact.headers.get("x-content-encoding"), "gzip");
  assert.equal(server.requests[0]?.headers["accept-encoding"], "identity");
  assert.equal(await (await hub.fetch(server.origin)).text(), "hello");
  assert.match(server.requests[1]?.headers["accept-encoding"] ?? "", /gzip/);
});
