import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor, serve } from "../../../test/http/kit.ts";

test("the Cache-Status of caches on the way comes before the hub's own", async t => {
  const server = await serve(t, (_, response) =>
    response.setHeader("cache-status", ["one; hit", "two; fwd=uri-miss"]).end(),
  );
  const hub = await hubFor(t);
  const { headers } = await hub.fetch(server.origin);
  assert.equal(headers.get("cache-status"), "one; hit, two; fwd=uri-miss, docstokg; fwd=miss");
});
