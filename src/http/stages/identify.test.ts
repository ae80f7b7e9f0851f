import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../../../test/http/kit.ts";
import { RedirectError } from "../../errors.ts";
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

const KEY = "k3y-of-the/operator";
const ESCAPED = encodeURIComponent(KEY);

for (const [place, location] of Object.entries({
  path: (far: string) => `${far}/${KEY}/file`,
  "escaped path": (far: string) => `${far}/x/${ESCAPED}`,
  "path that is escaped twice": (far: string) => `${far}/x/${encodeURIComponent(ESCAPED)}`,
  "user name": (far: string) => far.replace("//", `//${ESCAPED}@`),
  fragment: (far: string) => `${far}/#${KEY}`,
  "path of the same host": () => `/${KEY}/file`,
}))
  for (const identity of [{ query: { api_key: "{A_KEY}" } }, { headers: { "x-api-key": "{A_KEY}" } }])
    test(`a redirect with a key sent as ${Object.keys(identity)[0]} in its ${place} fails, and the key is sent nowhere`, async t => {
      const far = await serve(t, (_, response) => response.end("there"));
      const near = await serve(t, (_, response) =>
        response.writeHead(302, { location: location(`http://localhost:${far.port}`) }).end("moved"),
      );
      const hub = await createHub({
        env: { A_KEY: KEY },
        policy: { identities: { hosts: { "127.0.0.1": identity } } },
      });
      t.after(() => hub.destroy());
      for (const send of [
        () => hub.request(near.origin, { maxRedirections: 3 }),
        () => hub.request(near.origin),
        () => hub.fetch(near.origin),
      ]) {
        await assert.rejects(send(), (error: Error) => {
          assert.ok(error instanceof RedirectError);
          assert.match(error.message, /^127\.0\.0\.1 redirects to a URL that contains the key sent to this host/);
          assert.ok(!error.message.includes("k3y"));
          return true;
        });
      }
      assert.equal(near.requests.length, 3);
      assert.equal(far.requests.length, 0);
      assert.equal(hub.snapshot().inFlight, 0);
    });
