import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../../../test/http/kit.ts";
import { createHub } from "../create-hub.ts";

test("a Location that repeats the identification in its query is passed on without it", async t => {
  const server = await serve(t, (request, response) =>
    response.writeHead(302, { location: `https://elsewhere.example${request.url}` }).end(),
  );
  const hub = await createHub({
    env: {},
    mailto: "you@example.org",
    policy: { identities: { hosts: { "127.0.0.1": { query: { contact: "{mailto}" } } } } },
  });
  t.after(() => hub.destroy());
  const { headers, body } = await hub.request(`${server.origin}/page?a=b`);
  await body.dump();
  assert.equal(server.requests[0]?.url, "/page?a=b&contact=you%40example.org");
  assert.equal(headers["location"], "https://elsewhere.example/page?a=b");
});
