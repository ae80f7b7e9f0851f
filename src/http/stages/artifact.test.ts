import assert from "node:assert/strict";
import { test } from "node:test";
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
