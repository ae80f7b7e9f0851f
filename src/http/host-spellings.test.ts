import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createHub, RateLimitExceeded } from "../index.ts";

test("every spelling of an address is one host with one budget, in the policy and in requests", async t => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const hosts = { "[::ffff:127.0.0.1]": { metadata: { rates: "3/HOUR" } } };
  const hub = await createHub({ network: { allowPrivate: true }, policy: { ratelimits: { hosts } } });
  t.after(() => hub.close());

  for (const host of ["127.0.0.1", "0x7f.1", "2130706433"]) await hub.fetch(`http://${host}:${port}/${host}`);
  for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "[0:0:0:0:0:FFFF:7f00:1]", "127.0.0.1."])
    await assert.rejects(hub.fetch(`http://${host}:${port}/late`), RateLimitExceeded);
  assert.deepEqual(paths, ["/127.0.0.1", "/0x7f.1", "/2130706433"]);
  for (const host of ["127.0.0.1", "::ffff:7f00:1", "[::FFFF:127.0.0.1]"])
    assert.deepEqual(hub.policyFor(host, "metadata"), hub.policyFor("127.0.0.1", "metadata"));
});
