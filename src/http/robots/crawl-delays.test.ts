import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  assertNothingLeft,
  hubFor,
  only,
  recordEvents,
  serve,
  settles,
  type TestHubOptions,
  until,
} from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { RateLimitExceeded, StoreError } from "../../errors.ts";
import { limitPoliciesFrom } from "../../policy/limits.ts";
import { partitionName } from "../../policy/partition-name.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { internalsOf } from "../hub-internals.ts";
import { CrawlDelays } from "./crawl-delays.ts";
import type { RobotsFile } from "./kept-robots.ts";

const LIMITS = { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 600_000 };
const limits = { defaults: { metadata: LIMITS, landing: LIMITS, artifact: LIMITS } };

/** A hub on virtual time, and a server with this robots.txt; `pages()` lists what was requested besides it. */
async function scenario(t: Parameters<typeof serve>[0], robots: string | number, options: TestHubOptions = {}) {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    if (request.url !== "/robots.txt") return void response.end("page");
    if (typeof robots === "number") response.writeHead(robots).end("User-agent: *\nCrawl-delay: 10\n");
    else response.end(robots);
  });
  const hub = await hubFor(t, { time, crawlDelay: true, cache: false, limits, ...options });
  const urls = () => server.requests.map(({ url }) => url);
  const send = async (path: string, role: "landing" | "artifact" | "metadata") =>
    (await hub.fetch(`${server.origin}${path}`, { role, maxWaitMs: Number.POSITIVE_INFINITY })).text();
  return { time, server, hub, urls, send, pages: () => urls().filter(url => url !== "/robots.txt") };
}

test("landing and artifact requests of a host keep its Crawl-delay together, and robots.txt is requested once", async t => {
  const { time, hub, urls, send, pages } = await scenario(t, "User-agent: *\nCrawl-delay: 10\n");
  const events = recordEvents(hub);
  const sent = [send("/1", "landing"), send("/2", "artifact"), send("/3", "landing")];
  await until(() => pages().length === 1 && hub.snapshot().waiting === 2);
  await time.advance(9_999);
  assert.equal(pages().length, 1);
  await time.advance(30);
  await until(() => pages().length === 2);
  await time.advance(9_000);
  assert.equal(pages().length, 2);
  await time.advance(2_000);
  await Promise.all(sent);
  assert.equal(urls().filter(url => url === "/robots.txt").length, 1);
  assert.equal(urls()[0], "/robots.txt");
  assert.deepEqual(
    only(events, "crawl_delay").map(({ host, seconds }) => ({ host, seconds })),
    [{ host: "127.0.0.1", seconds: 10 }],
  );
});

test("a robots.txt that another process has read is not requested, unless it is a day old or cannot be read", async t => {
  const delay = "User-agent: *\nCrawl-delay: 10\n";
  const saved: (readonly [string, RobotsFile])[] = [];
  const day = 24 * 3_600_000;
  for (const [found, robotsRequests] of [
    [async () => ({ status: 200, text: delay, ageMs: day - 1 }), 0],
    [async () => ({ status: 200, text: delay, ageMs: day }), 1],
    [async () => undefined, 1],
    [() => Promise.reject(new StoreError("away")), 1],
  ] as const) {
    const { time, hub, server, urls, send, pages } = await scenario(t, delay);
    const save = async (origin: string, file: RobotsFile) => {
      saved.push([origin, file]);
      throw new StoreError("away");
    };
    internalsOf(hub)?.keepRobots({ find: found, save });
    const sent = [send("/1", "landing"), send("/2", "landing")];
    await until(() => pages().length === 1 && hub.snapshot().waiting === 1);
    assert.equal(urls().filter(url => url === "/robots.txt").length, robotsRequests);
    assert.deepEqual(saved.splice(0), robotsRequests === 0 ? [] : [[server.origin, { status: 200, text: delay }]]);
    await time.advance(11_000);
    await Promise.all(sent);
  }
});

test("metadata requests, listed hosts and calls of a hub without the option request no robots.txt", async t => {
  const listed = { limits: { ...limits, hosts: { "127.0.0.1": { landing: LIMITS } } } };
  const delay = "User-agent: *\nCrawl-delay: 10\n";
  for (const [role, options] of [
    ["metadata", {}],
    ["landing", listed],
    ["landing", { crawlDelay: false }],
  ] as const) {
    const { send, urls } = await scenario(t, delay, options);
    await Promise.all([send("/1", role), send("/2", role)]);
    assert.deepEqual(urls().toSorted(), ["/1", "/2"]);
  }
});

test("a robots.txt without a delay for this program, a missing one and a failing one set no delay", async t => {
  for (const robots of ["User-agent: other\nCrawl-delay: 10\n", "", 404, 500, 429]) {
    const { send, pages } = await scenario(t, robots, { retry: false });
    await Promise.all([send("/1", "landing"), send("/2", "artifact"), send("/3", "landing")]);
    assert.deepEqual(pages().toSorted(), ["/1", "/2", "/3"]);
  }
});

test("the first word of the User-Agent selects the group of robots.txt", async t => {
  const robots = "User-agent: *\nCrawl-delay: 10\nUser-agent: my-bot\nDisallow:\n";
  const { send, pages } = await scenario(t, robots, { userAgent: "My-Bot/2.0 (mailto:you@example.org)" });
  await Promise.all([send("/1", "landing"), send("/2", "landing")]);
  assert.equal(pages().length, 2);
});

test("a request that is aborted while robots.txt is read is not sent, and leaves nothing behind", async t => {
  const robots = Promise.withResolvers<() => void>();
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") robots.resolve(() => response.end("User-agent: *\nCrawl-delay: 10\n"));
    else response.end("page");
  });
  const hub = await hubFor(t, { time, crawlDelay: true, cache: false, limits });
  const controller = new AbortController();
  const aborted = hub.fetch(`${server.origin}/1`, { role: "landing", signal: controller.signal });
  const other = hub.fetch(`${server.origin}/2`, { role: "landing" });
  const answer = await robots.promise;
  controller.abort();
  await assert.rejects(aborted, { name: "AbortError" });
  answer();
  await (await other).text();
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/robots.txt", "/2"],
  );
  assert.equal(hub.snapshot().calls, 0);
});

test("a robots.txt that does not arrive within 10 s sets no delay, and the requests are sent", async t => {
  const time = new FakeTime();
  const asked = Promise.withResolvers<void>();
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") asked.resolve();
    else response.end("page");
  });
  const hub = await hubFor(t, { time, crawlDelay: true, cache: false, limits, retry: false });
  const sent = [1, 2].map(async number => (await hub.fetch(`${server.origin}/${number}`, { role: "landing" })).text());
  await asked.promise;
  await time.advance(10_001);
  assert.deepEqual(await Promise.all(sent), ["page", "page"]);
});

/** A server that holds its robots.txt until the test answers it. */
async function heldRobots(t: Parameters<typeof serve>[0]) {
  const time = new FakeTime();
  const robots = Promise.withResolvers<() => void>();
  const server = await serve(t, ({ url }, response) => {
    if (url === "/robots.txt") robots.resolve(() => response.end("User-agent: *\nCrawl-delay: 2\n"));
    else response.end("page");
  });
  const hub = await hubFor(t, { time, crawlDelay: true, cache: false, limits });
  const events = recordEvents(hub);
  const send = async (path: string, maxWaitMs: number) =>
    (await hub.fetch(`${server.origin}${path}`, { role: "landing", maxWaitMs })).text();
  const answer = async () => {
    (await robots.promise)();
    await until(() => only(events, "crawl_delay").length === 1);
  };
  return { time, hub, send, answer, asked: robots.promise, pages: () => server.requests.length - 1 };
}

test("a call that may not wait is refused while robots.txt is read, and sent afterwards", async t => {
  const { time, hub, send, answer, asked, pages } = await heldRobots(t);
  await assert.rejects(send("/1", 0), (error: Error) => {
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.retryAfterMs, 10_000);
    assert.equal(
      error.message,
      "Crawl-delay (robots.txt is being read) for 127.0.0.1 (landing): next slot in 10 s, but this call waits at most 0 ms (maxWaitMs)",
    );
    return true;
  });
  await asked;
  await time.advance(4_000);
  await assert.rejects(send("/2", 0), { retryAfterMs: 6_000 });
  assert.equal(pages(), 0);
  await answer();
  assert.equal(await send("/3", 0), "page");
  assertNothingLeft(hub, time);
});

test("the wait for robots.txt is part of maxWaitMs", async t => {
  const { time, hub, send, answer, asked, pages } = await heldRobots(t);
  const short = assert.rejects(send("/1", 500), { code: "DOCSTOKG_RATE_LIMITED", retryAfterMs: 9_500 });
  const second = send("/2", 5_000);
  // After robots.txt it may wait 1 s more, and not 2 s.
  const third = assert.rejects(send("/3", 5_000), RateLimitExceeded);
  await asked;
  await time.advance(499);
  assert.equal(hub.snapshot().calls, 4);
  await time.advance(1);
  await settles(short);
  await time.advance(3_500);
  await answer();
  assert.equal(await second, "page");
  await third;
  assert.equal(pages(), 1);
  assertNothingLeft(hub, time);
});

test("a robots.txt that the caller requests itself is read, and not requested again", async t => {
  const { time, hub, urls, send, pages } = await scenario(t, "User-agent: *\nCrawl-delay: 10\n");
  await send("/robots.txt", "landing");
  const sent = [send("/1", "artifact"), send("/2", "artifact")];
  await until(() => hub.snapshot().waiting > 0);
  await time.advance(9_000);
  assert.ok(pages().length < 2);
  for (let step = 0; step < 2; step += 1) await time.advance(10_030);
  await Promise.all(sent);
  assert.equal(urls().filter(url => url === "/robots.txt").length, 1);
});

test("a HEAD of robots.txt reads no delay, so the file is requested before the first page", async t => {
  const { time, hub, server, urls, send, pages } = await scenario(t, "User-agent: *\nCrawl-delay: 10\n");
  await hub.fetch(`${server.origin}/robots.txt`, { method: "HEAD", role: "landing" });
  const sent = [send("/1", "landing"), send("/2", "landing")];
  await until(() => pages().length === 1 && hub.snapshot().waiting === 1);
  assert.deepEqual(urls(), ["/robots.txt", "/robots.txt", "/1"]);
  await time.advance(11_000);
  await Promise.all(sent);
});

for (const role of ["landing", "artifact"] as const)
  for (const isRequestedByCaller of [false, true])
    test(`a compressed robots.txt is read, for the role ${role}, requested by ${isRequestedByCaller ? "the caller" : "the hub"}`, async t => {
      const time = new FakeTime();
      const server = await serve(t, ({ url }, response) => {
        if (url !== "/robots.txt") return void response.end("page");
        response.setHeader("content-encoding", "gzip").end(gzipSync("User-agent: *\nCrawl-delay: 10\n"));
      });
      const hub = await hubFor(t, { time, crawlDelay: true, cache: false, limits });
      const get = async (path: string) => (await hub.fetch(`${server.origin}${path}`, { role })).arrayBuffer();
      if (isRequestedByCaller) await get("/robots.txt");
      const sent = [get("/1"), get("/2")];
      // The caller's own request for robots.txt counts, so both pages wait.
      await until(() => hub.snapshot().waiting === (isRequestedByCaller ? 2 : 1));
      await time.advance(11_000);
      await Promise.race(sent);
      await time.advance(11_000);
      await Promise.all(sent);
      assert.equal(server.requests.length, 3);
    });

test("a robots.txt in an unknown coding sets no delay, and is not kept", async t => {
  const saved: string[] = [];
  const server = await serve(t, ({ url }, response) => {
    if (url === "/robots.txt") response.setHeader("content-encoding", "zstd");
    response.end("User-agent: *\nCrawl-delay: 10\n");
  });
  const hub = await hubFor(t, { crawlDelay: true, cache: false, limits });
  const save = async (_: string, { text }: RobotsFile) => void saved.push(text);
  internalsOf(hub)?.keepRobots({ find: async () => undefined, save });
  for (const path of ["/1", "/2"]) await (await hub.fetch(`${server.origin}${path}`, { role: "landing" })).text();
  assert.deepEqual(saved, []);
});

test("robots.txt is requested outside the context of the caller that comes first", async t => {
  const { server, hub, urls } = await scenario(t, "User-agent: *\nCrawl-delay: 10\n");
  const events = recordEvents(hub);
  const context = new AsyncLocalStorage<string>();
  const contexts: (string | undefined)[] = [];
  const callStarted = () => void contexts.push(context.getStore());
  hub.listen(Object.assign(() => undefined, { tracer: { callStarted } }));
  const judged: number[] = [];
  const outcome = ({ status }: { readonly status: number }) => {
    judged.push(status);
    return "neutral" as const;
  };
  const call = { role: "landing", resolver: "first", partition: "tenant", outcome } as const;
  const response = await context.run("caller", () => hub.with(call, () => hub.request(`${server.origin}/1`)));
  await response.body.text();
  assert.deepEqual(urls(), ["/robots.txt", "/1"]);
  assert.deepEqual(
    only(events, "http_attempt").map(({ resolver, partition }) => [resolver, partition !== undefined]),
    [
      [undefined, false],
      ["first", true],
    ],
  );
  assert.deepEqual(judged, [200]);
  assert.deepEqual(contexts, ["caller", undefined]);
});

test("a reload keeps the delay, and a reload that lists the host ends it", async t => {
  const { time, hub, send, pages } = await scenario(t, "User-agent: *\nCrawl-delay: 10\n");
  await send("/1", "landing");
  await hub.reload({ ratelimits: { extends: "none", ...limits }, breakers: { extends: "none" } });
  const second = send("/2", "landing");
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(10_030);
  await second;
  const own = { hosts: { "127.0.0.1": { total: { rates: "1000/SECOND" }, landing: LIMITS } } };
  await hub.reload({ ratelimits: { extends: "none", ...limits, ...own }, breakers: { extends: "none" } });
  await Promise.all([send("/3", "landing"), send("/4", "landing")]);
  assert.equal(pages().length, 4);
});

test("with a shared store, the first page is sent as soon as robots.txt was read, and no process exceeds the delay", async t => {
  const backend = { kind: "sqlite", dsn: join(temporaryFolder("delays"), "limits.db") } as const;
  const { time, server, send, pages } = await scenario(t, "User-agent: *\nCrawl-delay: 10\n", {
    limits: { ...limits, backend },
  });
  await send("/1", "landing");
  assert.deepEqual(pages(), ["/1"]);
  const other = await hubFor(t, { time, crawlDelay: true, cache: false, limits: { ...limits, backend } });
  const second = other.fetch(`${server.origin}/2`, { role: "landing", maxWaitMs: Number.POSITIVE_INFINITY });
  await until(() => other.snapshot().waiting === 1 || pages().length > 1);
  await time.advance(8_000);
  assert.deepEqual(pages(), ["/1"]);
  await time.advance(3_000);
  await (await second).text();
  assert.deepEqual(pages(), ["/1", "/2"]);
});

test("a delay is at most 60 s, and the oldest of very many hosts is forgotten", () => {
  const delays = new CrawlDelays();
  assert.equal(delays.set("a.example", 86_400), 60);
  assert.equal(delays.set("a.example", 60), undefined);
  const base = limitPoliciesFrom({}, "test");
  const rates = (host: string) => delays.applyTo(base).route(host, "landing").above[0]?.policy.labels;
  assert.deepEqual(rates("a.example"), ["1/MINUTE"]);
  assert.equal(delays.applyTo(base).route("a.example", "metadata").above.length, 0);
  for (let host = 0; host < 4096; host += 1) delays.set(`h${host}.example`, 2);
  assert.equal(rates("a.example"), undefined);
  assert.deepEqual(rates("h0.example"), ["1/2SECOND"]);
});

test("all partitions of a host keep its delay together", () => {
  const delays = new CrawlDelays();
  delays.set("a.example", 2);
  const base = limitPoliciesFrom({ defaults: { landing: { per: "partition" } } }, "test");
  const routed = delays.applyTo(base);
  const partition = routed.routeByName(partitionName("a.example", "tenant"), "landing");
  assert.deepEqual(partition?.above, routed.route("a.example", "landing").above);
  assert.equal(partition?.above[0]?.name, "a.example");
});

test("a delay applies from the next reload on, so that it counts what was sent before", () => {
  const delays = new CrawlDelays();
  const before = delays.applyTo(limitPoliciesFrom({}, "test"));
  delays.set("a.example", 2);
  assert.deepEqual(before.route("a.example", "landing").above, []);
  assert.deepEqual([before.isNamed("a.example"), delays.applyTo(before).isNamed("a.example")], [false, true]);
});
