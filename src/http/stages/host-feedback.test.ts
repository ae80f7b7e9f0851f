import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { hubFor, only, recordEvents, serve, tlsFixture, until } from "../../../test/http/kit.ts";
import { RateLimitExceeded } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { createHub } from "../create-hub.ts";

const { cert, key } = tlsFixture();

/** A TLS server with HTTP/2 and HTTP/1.1 for example.org that counts concurrent requests. */
async function secure(t: TestContext) {
  const seen = { versions: new Set<string>(), connections: 0, most: 0, now: 0, headers: [] as object[] };
  const server = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) => {
    seen.versions.add(request.httpVersion);
    seen.headers.push({ ...request.headers });
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
    setImmediate(() => {
      seen.now -= 1;
      response.end("secure");
    });
  });
  server.on("secureConnection", socket => {
    seen.connections += 1;
    t.after(() => socket.destroy());
  });
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return Object.assign(seen, { port });
}

test("a stricter limit that a server announces applies from then on, and is reported", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) =>
    response
      .writeHead(200, { "x-rate-limit-limit": "2", "x-rate-limit-interval": "1s", "x-concurrency-limit": "1" })
      .end(),
  );
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "10/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin)).text();
  await (await hub.fetch(server.origin)).text();
  await assert.rejects(hub.request(server.origin), error => {
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.constraint.limit, "2/SECOND");
    return true;
  });
  assert.deepEqual(
    only(events, "limit_learned").map(({ what, old, new: learned }) => ({ what, old, learned })),
    [
      { what: "rate", old: "10/SECOND", learned: "2/SECOND" },
      { what: "concurrency", old: "none", learned: "max_concurrent 1" },
    ],
  );
});

test("a quota of 0 holds the key until its reset, and stored responses do not change limits", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) =>
    response.writeHead(200, { ratelimit: "limit=100, remaining=0, reset=30", "cache-control": "max-age=600" }).end("x"),
  );
  const hub = await hubFor(t, { time });
  const events = recordEvents(hub);
  await (await hub.fetch(`${server.origin}/a`)).text();
  await assert.rejects(hub.request(`${server.origin}/b`), { name: "RateLimitExceeded", retryAfterMs: 30_000 });
  await time.advance(30_000);
  await (await hub.fetch(`${server.origin}/a`)).text();
  assert.equal(only(events, "ratelimit.cooldown").length, 1);
  await (await hub.fetch(`${server.origin}/c`)).text();
  assert.equal(server.requests.length, 2);
});

test("a 429 although the limit was kept widens the guard", async t => {
  const server = await serve(t, (_, response) => response.writeHead(429).end());
  const hub = await hubFor(t, {
    retry: false,
    limits: { defaults: { metadata: { rates: "10/SECOND", guard_ms: 25 } } },
  });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual(
    only(events, "guard_adjust").map(event => [event.old, event.new]),
    [[25, 50]],
  );
});

test("a status that an archive replays is neutral for the archive", async t => {
  const server = await serve(t, (_, response) =>
    response.writeHead(503, { "memento-datetime": "Thu, 01 Jan 2015 00:00:00 GMT", "retry-after": "600" }).end(),
  );
  const hub = await hubFor(t, { breakers: { defaults: { fail_max: 1 } } });
  await (await hub.fetch(server.origin)).text();
  assert.equal((await hub.fetch(server.origin)).status, 503);
  assert.equal(server.requests.length, 2);
});

test("HTTP/2 is used where it is offered, over one connection, and the gate limits the requests in flight", async t => {
  const server = await secure(t);
  const hub = await hubFor(t, {
    cache: false,
    limits: { defaults: { metadata: { rates: "1000/SECOND", max_concurrent: 7 } } },
    network: { connectTo: [`example.org:443:127.0.0.1:${server.port}`], tls: { ca: cert } },
  });
  const answers = await Promise.all(
    Array.from(
      { length: 50 },
      async (_, n) => (await (n % 2 ? hub.fetch : hub.request)(`https://example.org/${n}`)).body,
    ),
  );
  await until(() => hub.snapshot().inFlight === 0);
  assert.equal(answers.length, 50);
  assert.deepEqual([...server.versions], ["2.0"]);
  assert.equal(server.connections, 1);
  assert.ok(server.most <= 7, `${server.most} at once`);
});

test("a host gets its key, and another host that it redirects to does not", async t => {
  const server = await secure(t);
  const other = await serve(t, (_, response) => response.end("other"));
  const hub = await createHub({
    env: { EXAMPLE_KEY: "s3cret-key", DOCSTOKG_MAILTO: "you@example.org" },
    policy: {
      identities: {
        hosts: { "example.org": { query: { mailto: "{mailto}" }, headers: { "x-api-key": "{EXAMPLE_KEY}" } } },
      },
    },
    network: { connectTo: [`example.org:443:127.0.0.1:${server.port}`], tls: { ca: cert } },
  });
  t.after(() => hub.destroy());
  const events = recordEvents(hub);
  await (await hub.fetch("https://example.org/x?a=b")).text();
  await (await hub.fetch(other.origin)).text();
  const [headers] = server.headers as Record<string, string>[];
  assert.equal(headers?.["x-api-key"], "s3cret-key");
  assert.equal(headers?.[":path"] ?? "/x?a=b&mailto=you%40example.org", "/x?a=b&mailto=you%40example.org");
  assert.match(headers?.["user-agent"] ?? "", /^docstokg\/\S+ \(mailto:you@example\.org\)$/);
  assert.equal(other.requests[0]?.headers["x-api-key"], undefined);
  assert.equal(other.requests[0]?.url, "/");
  assert.ok(!JSON.stringify([events, hub.snapshot()]).includes("s3cret-key"));
});

test("a Retry-After date is measured against the Date of the same response", async t => {
  const server = await serve(t, (_, response) =>
    response
      .writeHead(503, { date: "Mon, 01 Jan 2001 00:00:00 GMT", "retry-after": "Mon, 01 Jan 2001 00:00:05 GMT" })
      .end(),
  );
  const hub = await hubFor(t, { time: new FakeTime(), retry: false });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual(
    only(events, "http_request").map(({ retry_after_s }) => retry_after_s),
    [5],
  );
});

test("a 403 with remaining 0 is a throttle, and one with remaining quota is neutral", async t => {
  const server = await serve(t, (request, response) =>
    response
      .writeHead(403, {
        "x-ratelimit-remaining": "60",
        "x-rate-limit-remaining": request.url === "/spent" ? "0" : "1",
      })
      .end(),
  );
  const hub = await hubFor(t, { time: new FakeTime(), retry: false });
  const events = recordEvents(hub);
  for (const path of ["/", "/spent"]) await (await hub.fetch(`${server.origin}${path}`)).text();
  assert.deepEqual(
    only(events, "http_request").map(({ breaker_recorded }) => breaker_recorded),
    ["neutral", "failure"],
  );
});

for (const [family, fields, learned] of [
  ["RateLimit-Policy", { "ratelimit-policy": '"default";q=5;w=1' }, "5/SECOND"],
  ["X-Rate-Limit", { "x-rate-limit-limit": "5", "x-rate-limit-interval": "1s" }, "5/SECOND"],
  ["X-Concurrency-Limit", { "x-concurrency-limit": "5" }, "max_concurrent 5"],
] as const) {
  test(`a limit that is announced in ${family} alone is obeyed`, async t => {
    const server = await serve(t, (_, response) => response.writeHead(200, fields).end());
    const hub = await hubFor(t, { cache: false });
    const events = recordEvents(hub);
    await (await hub.fetch(server.origin)).text();
    assert.deepEqual(
      only(events, "limit_learned").map(event => event.new),
      [learned],
    );
  });
}

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
    /^the call option settleCosts failed: costs\.credits must be an integer of at least 0, got -1/,
  );
  assert.equal(credits(), 47);
  await assert.rejects(
    hub.fetch(url, { costs: 5 as never }),
    /costs must be an object such as \{ credits: 10 \}, not 5/,
  );
  await close();
});
