import assert from "node:assert/strict";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { recordEvents, serve, tlsFixture } from "../../test/http/kit.ts";
import { RateLimitExceeded } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { createHub } from "./create-hub.ts";
import type { Hub } from "./hub.ts";

const KEY = "the-key-of-a-test";
const role = { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 };
const tiered = { metadata: role, with: { API_KEY: { metadata: { rates: "50/SECOND" } } } };
/** The name of the budget of requests with the key. */
const keyed = "example.org with API_KEY";

interface Answer {
  readonly status: number;
  readonly location?: string;
}

/** Servers for http and https, and a hub on virtual time that reaches them as example.org. */
async function setUp(t: TestContext, answer: (url: string) => Answer = () => ({ status: 200 })) {
  const sent: string[] = [];
  const handler = (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { encrypted = false } = request.socket as { encrypted?: boolean };
    const scheme = encrypted ? "https" : "http";
    sent.push(`${scheme} ${request.headers["x-api-key"] ?? "no key"}`);
    const { status, location } = answer(`${scheme}://${request.headers.host}${request.url}`);
    response.writeHead(status, location === undefined ? {} : { location }).end("ok");
  };
  const plain = await serve(t, handler);
  const secure = https.createServer(tlsFixture(), handler);
  await new Promise<void>(resolve => secure.listen(0, "127.0.0.1", resolve));
  const { port } = secure.address() as AddressInfo;
  t.after(() => {
    secure.closeAllConnections();
    secure.close();
  });
  const hub = await createHub({
    env: { API_KEY: KEY },
    cache: false,
    retry: false,
    time: new FakeTime(),
    policy: {
      ratelimits: { extends: "none", hosts: { "example.org": tiered, "127.0.0.1": tiered } },
      breakers: { extends: "none" },
      identities: {
        extends: "none",
        hosts: {
          "example.org": { headers: { "x-api-key": "{API_KEY}" } },
          "127.0.0.1": { headers: { "x-api-key": "{API_KEY}" } },
        },
      },
    },
    network: {
      tls: { ca: tlsFixture().cert },
      connectTo: [
        ...["80", "8080"].map(from => `example.org:${from}:127.0.0.1:${plain.port}`),
        ...["443", "8443"].map(from => `example.org:${from}:127.0.0.1:${port}`),
      ],
    },
  });
  t.after(() => hub.destroy());
  return { hub, sent, port: plain.port };
}

/** The number of five calls at the same time that are sent at once. */
async function burst(hub: Hub, url: string, init: object = {}): Promise<number> {
  const calls = Array.from({ length: 5 }, () => hub.fetch(url, { maxWaitMs: 0, ...init }));
  const results = await Promise.allSettled(calls);
  for (const result of results)
    if (result.status === "rejected") assert.ok(result.reason instanceof RateLimitExceeded, String(result.reason));
  return results.filter(({ status }) => status === "fulfilled").length;
}

for (const [title, url, count, key] of [
  ["over http", "http://example.org/x", 1, "http no key"],
  ["over https", "https://example.org/x", 5, `https ${KEY}`],
  ["to another port of http", "http://example.org:8080/x", 1, "http no key"],
  ["to another port of https, which gets no key", "https://example.org:8443/x", 1, "https no key"],
] as const)
  test(`the limits with a key hold for calls that send the key: ${title}`, async t => {
    const { hub, sent } = await setUp(t);
    assert.equal(await burst(hub, url), count);
    assert.deepEqual(new Set(sent), new Set([key]));
    assert.deepEqual(
      hub.snapshot().keys.map(row => row.key),
      [count === 5 ? keyed : "example.org"],
    );
  });

test("a server of this machine gets the key over http at every port, and has the limits with the key", async t => {
  const { hub, sent, port } = await setUp(t);
  assert.equal(await burst(hub, `http://127.0.0.1:${port}/x`), 5);
  assert.deepEqual(new Set(sent), new Set([`http ${KEY}`]));
});

test("calls with and without the key have limits of their own", async t => {
  const { hub } = await setUp(t);
  assert.equal(await burst(hub, "https://example.org/x"), 5);
  assert.equal(await burst(hub, "http://example.org/x"), 1);
  assert.equal(await burst(hub, "https://example.org/x"), 5);
});

test("a call that sets the field of the key itself has the limits without the key, unless it sends the same key", async t => {
  const { hub, sent } = await setUp(t);
  assert.equal(await burst(hub, "https://example.org/x", { headers: { "x-api-key": "mine" } }), 1);
  assert.deepEqual(new Set(sent), new Set(["https mine"]));
  assert.equal(await burst(hub, "https://example.org/x", { headers: { "x-api-key": KEY } }), 5);
});

test("each hop of a redirect between https and http has the limits of what it sends", async t => {
  const { hub, sent } = await setUp(t, url =>
    url === "https://example.org/1"
      ? { status: 302, location: "http://example.org/2" }
      : url === "http://example.org/2"
        ? { status: 302, location: "https://example.org/3" }
        : { status: 200 },
  );
  assert.equal(await (await hub.fetch("https://example.org/1", { maxWaitMs: 0 })).text(), "ok");
  assert.deepEqual(sent, [`https ${KEY}`, "http no key", `https ${KEY}`]);
  assert.deepEqual(
    hub.snapshot().keys.map(({ key, acquired }) => [key, acquired]),
    [
      [keyed, 2],
      ["example.org", 1],
    ],
  );
  // The http hop of the second call is refused; its https hops would have had room.
  await assert.rejects(hub.fetch("https://example.org/1", { maxWaitMs: 0 }), RateLimitExceeded);
});

test("a refusal of a call without the key names the limit without the key, and its setting", async t => {
  const { hub } = await setUp(t);
  const events = recordEvents(hub);
  await hub.fetch("http://example.org/x");
  const refused = await hub.fetch("http://example.org/x", { maxWaitMs: 0 }).catch(error => error);
  assert.ok(refused instanceof RateLimitExceeded);
  assert.equal(refused.host, "example.org");
  assert.equal(refused.constraint.limit, "1/SECOND");
  assert.equal(refused.decidedBy?.value, "1/SECOND");
  assert.deepEqual([...new Set(events.flatMap(event => ("key" in event ? [event.key] : [])))], ["example.org"]);
});

test("policyFor and explain of a URL show the limits of calls to it", async t => {
  const { hub } = await setUp(t);
  const shown = ["http://example.org/", "https://example.org/", "https://example.org:8443/", "example.org"].map(
    target => [hub.policyFor(target).rates, hub.explain(target).find(({ field }) => field === "rates")?.value],
  );
  assert.deepEqual(shown, [
    ["1/SECOND", "1/SECOND"],
    ["50/SECOND", "50/SECOND"],
    ["1/SECOND", "1/SECOND"],
    ["50/SECOND", "50/SECOND"],
  ]);
});

/** How a client of node:http reaches the hub. */
const WAYS = {
  "hub.agents": (hub: Hub, t: TestContext) => {
    const agents = hub.agents();
    t.after(() => agents.http.destroy());
    return agents.http;
  },
  "hub.install": (hub: Hub, t: TestContext) => {
    t.after(hub.install({ maxWaitMs: 0 }));
    return undefined;
  },
};

for (const [way, agentsOf] of Object.entries(WAYS))
  test(`${way}: a request of node:http has the limits with a key only if it sends the key`, async t => {
    const { hub, sent, port } = await setUp(t);
    const agent = agentsOf(hub, t);
    const lookup = ((_: string, { all }: { all?: boolean }, done: (...results: unknown[]) => void) =>
      all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4)) as never;
    const send = async (options: http.RequestOptions) => {
      const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
      http.get({ port, lookup, ...(agent && { agent }), ...options }, resolve).on("error", reject);
      return text(await promise);
    };
    const isRefused = (error: unknown) => error instanceof RateLimitExceeded && error.host === "example.org";
    assert.equal(await send({ host: "example.org" }), "ok");
    await assert.rejects(send({ host: "example.org" }), isRefused);
    // A proxy gets the complete URL, and no key.
    await assert.rejects(send({ host: "127.0.0.1", path: "https://example.org/x" }), isRefused);
    for (let call = 0; call < 5; call += 1) assert.equal(await send({ host: "127.0.0.1" }), "ok");
    assert.deepEqual(sent, ["http no key", ...Array(5).fill(`http ${KEY}`)]);
    // Headers in an array are rendered before the hub can add the key.
    const rendered = { host: "127.0.0.1", headers: ["host", "127.0.0.1"] as never };
    assert.equal(await send(rendered), "ok");
    assert.equal(sent.at(-1), "http no key");
    await assert.rejects(send(rendered), error => error instanceof RateLimitExceeded && error.host === "127.0.0.1");
  });
