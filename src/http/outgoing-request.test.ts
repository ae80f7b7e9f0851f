import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";

test("the query option is appended to the query of the URL", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  for (const path of ["/", "/?a=b"]) {
    for (const query of [{}, { c: "d" }]) await (await hub.request(`${server.origin}${path}`, { query })).body.text();
  }
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/", "/?c=d", "/?a=b", "/?a=b&c=d"],
  );
});
