import assert from "node:assert/strict";
import type { LookupFunction } from "node:net";
import { test } from "node:test";
import { Agent, interceptors } from "undici";
import { hubFor, serve } from "../../test/http/kit.ts";

test("limits apply to the host name, whatever address it is connected to", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const lookup: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);
  const hub = await hubFor(t, { network: { lookup } });
  await (await hub.fetch(`http://one.example:${server.port}/`)).text();
  await (await hub.request(`http://TWO.example:${server.port}/`)).body.text();
  const { keys, hosts } = hub.snapshot();
  assert.deepEqual(
    { keys: keys.map(({ key }) => key), hosts: hosts.map(({ host }) => host) },
    { keys: ["one.example", "two.example"], hosts: ["one.example", "two.example"] },
  );
});

test("limits apply to the host name also with a dispatcher that resolves names itself", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const agent = new Agent();
  t.after(() => agent.destroy());
  const dispatcher = agent.compose(interceptors.dns());
  const hub = await hubFor(t, { dispatcher });
  await (await hub.request(`http://localhost:${server.port}/`)).body.text();
  assert.deepEqual(
    hub.snapshot().keys.map(({ key }) => key),
    ["localhost"],
  );
});

test("a policy for host:port applies to that port only", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    cache: false,
    limits: { hosts: { [`127.0.0.1:${server.port}`]: { metadata: { rates: "7/SECOND", guard_ms: 0 } } } },
  });
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual(
    hub.snapshot().keys.map(({ key }) => key),
    [`127.0.0.1:${server.port}`],
  );
});
