import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createHub } from "../../index.ts";

/** A server that answers with these headers, and a hub whose policy limits credits there. */
async function creditServer(metadata: object, headers: Record<string, string>) {
  const server = createServer((_request, response) => response.writeHead(200, headers).end("ok"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const limits = { rates: "100/s", costs: { credits: "100/HOUR" }, ...metadata };
  const hub = await createHub({
    policy: { ratelimits: { hosts: { "127.0.0.1": { metadata: limits } } } },
    network: { allowPrivate: true },
    cache: false,
  });
  const credits = () =>
    hub.snapshot().keys.flatMap(({ windows }) => windows.filter(({ unit }) => unit === "credits"))[0]?.used;
  const close = async () => {
    await hub.close();
    server.close();
  };
  return { hub, url, credits, close };
}

test("a call uses its costs, and the header that the policy names says what it really used", async () => {
  const policy = { call_costs: { credits: 10 }, cost_headers: { credits: "X-Credits-Used" } };
  const { hub, url, credits, close } = await creditServer(policy, { "x-credits-used": "3" });
  await (await hub.fetch(url)).text();
  assert.equal(credits(), 3);
  await (await hub.fetch(url, { costs: { credits: 90 } })).text();
  assert.equal(credits(), 6);
  await assert.rejects(hub.fetch(url, { costs: { credits: 95 }, maxWaitMs: 0 }), {
    name: "RateLimitExceeded",
    constraint: { kind: "window", owner: "127.0.0.1", limit: "credits 100/HOUR" },
  });
  await close();
});

test("a header that is no number is ignored, and a fraction is rounded up", async () => {
  const policy = { cost_headers: { credits: "X-Credits-Used" } };
  for (const [value, used] of [
    ["many", 5],
    ["-1", 5],
    ["2.1", 3],
  ] as const) {
    const { hub, url, credits, close } = await creditServer(policy, { "x-credits-used": value });
    await (await hub.fetch(url, { costs: { credits: 5 } })).text();
    assert.equal(credits(), used, value);
    await close();
  }
});

test("settleCosts gets the head of the response, and its error becomes a warning", async () => {
  const { hub, url, credits, close } = await creditServer({}, { "x-used": "42" });
  const settleCosts = ({ status, headers }: { status: number; headers: Readonly<Record<string, unknown>> }) => ({
    credits: status === 200 ? Number(headers["x-used"]) : 0,
  });
  await (await hub.fetch(url, { costs: { credits: 5 }, settleCosts })).text();
  assert.equal(credits(), 42);
  const warned = once(process, "warning");
  const fail = () => ({ credits: -1 });
  assert.equal(await (await hub.fetch(url, { costs: { credits: 5 }, settleCosts: fail })).text(), "ok");
  assert.match(
    (await warned)[0].message,
    /^settleCosts failed: costs\.credits must be an integer of at least 0, got -1/,
  );
  assert.equal(credits(), 47);
  await assert.rejects(
    hub.fetch(url, { costs: 5 as never }),
    /costs must be an object such as \{ credits: 10 \}, not 5/,
  );
  await close();
});
