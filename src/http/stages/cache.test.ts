import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import {
  assertNothingLeft,
  type Handler,
  hubFor,
  ONE_A_MINUTE,
  only,
  recordEvents,
  serve,
  type TestHubOptions,
  until,
} from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { CallOptions } from "../call-options.ts";

async function world(t: Parameters<typeof serve>[0], handler: Handler, options: TestHubOptions = {}) {
  const time = new FakeTime();
  const server = await serve(t, handler);
  const hub = await hubFor(t, { time, random: () => 0, retry: false, ...options });
  const events = recordEvents(hub);
  const get = async (path = "/", init: Parameters<typeof hub.fetch>[1] = {}) => {
    const response = await hub.fetch(`${server.origin}${path}`, init);
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  const verdicts = () =>
    only(events, "http_request").map(({ from_cache, revalidated, stale, coalesced }) =>
      coalesced ? "coalesced" : revalidated ? "revalidated" : stale ? "stale" : from_cache ? "hit" : "miss",
    );
  return { time, server, hub, events, get, verdicts };
}

const fresh: Handler = (_, response, number) => response.setHeader("cache-control", "max-age=60").end(`body ${number}`);

/** Answers 304 when If-None-Match has the current ETag. */
const tagged: (control: string) => Handler = control => (request, response, number) => {
  response.setHeader("cache-control", control).setHeader("etag", '"one"').setHeader("x-number", `${number}`);
  if (request.headers["if-none-match"] === '"one"') response.writeHead(304).end();
  else response.end("tagged");
};

test("a fresh hit uses no request, no rate-limit unit and no breaker permit", async t => {
  const { server, events, get, verdicts } = await world(t, fresh);
  assert.equal((await get()).text, "body 1");
  const before = events.length;
  const second = await get();
  assert.equal(second.text, "body 1");
  assert.equal(second.headers.get("age"), "0");
  assert.equal(second.headers.get("cache-status"), "docstokg; hit");
  assert.equal(server.requests.length, 1);
  assert.deepEqual(
    events.slice(before).map(event => event.event_type),
    ["http_request"],
  );
  assert.deepEqual(verdicts(), ["miss", "hit"]);
});

test("a response is served while it is fresh, with its age, and not a second longer", async t => {
  const { time, server, get } = await world(t, fresh);
  await get();
  await time.advance(59_999);
  assert.equal((await get()).headers.get("age"), "59");
  await time.advance(1);
  assert.equal((await get()).text, "body 2");
  assert.equal(server.requests.length, 2);
});

test("with cacheLifetimeMs a response without a lifetime is stored and served for that time", async t => {
  const plain: Handler = (_, response, number) => response.end(`body ${number}`);
  const { time, server, get, verdicts } = await world(t, plain, { defaults: { cacheLifetimeMs: 60_000 } });
  await get();
  await time.advance(59_999);
  assert.equal((await get()).text, "body 1");
  // A call that states a shorter time of its own, and one that accepts only what the server says.
  assert.equal((await get("/", { cacheLifetimeMs: 10_000 })).text, "body 2");
  assert.equal((await get("/", { cacheLifetimeMs: 0 })).text, "body 3");
  assert.equal((await get()).text, "body 4", "a newer response that is not stored removes the stored one");
  await time.advance(60_000);
  assert.equal((await get()).text, "body 5");
  assert.equal(server.requests.length, 5);
  assert.deepEqual(verdicts(), ["miss", "hit", "miss", "miss", "miss", "miss"]);
  await assert.rejects(get("/", { cacheLifetimeMs: -1 }), /cacheLifetimeMs must be a number of at least 0, not -1/);
});

test("an Age header of the server does not mark a hit", async t => {
  const { get, verdicts } = await world(t, (_, response) =>
    response.setHeader("age", "30").setHeader("cache-control", "max-age=60").end(),
  );
  await get();
  assert.deepEqual(verdicts(), ["miss"]);
});

test("a fresh hit is served while the circuit is open", async t => {
  const { hub, server, get, events } = await world(t, (request, response) => {
    if (request.url === "/") fresh(request, response, 1);
    else response.writeHead(503, { "retry-after": "300" }).end();
  });
  await get();
  await get("/broken");
  assert.equal(hub.snapshot().hosts[0]?.state, "open");
  assert.equal((await get()).text, "body 1");
  await assert.rejects(get("/other"));
  assert.equal(server.requests.length, 2);
  assert.equal(only(events, "breaker_success").length, 1);
});

test("a revalidation uses a rate-limit unit, is a success for the breaker, and keeps the entry", async t => {
  const { time, server, get, events, verdicts } = await world(t, tagged("max-age=60"));
  await get();
  await time.advance(60_000);
  const second = await get();
  assert.deepEqual({ status: second.status, text: second.text }, { status: 200, text: "tagged" });
  assert.equal(second.headers.get("x-number"), "2", "the headers of the 304 replace the stored ones");
  assert.equal((await get()).text, "tagged");
  assert.equal(server.requests.length, 2);
  assert.equal(only(events, "ratelimit.acquire").length, 2);
  assert.equal(only(events, "breaker_success").length, 2);
  assert.deepEqual(verdicts(), ["miss", "revalidated", "hit"]);
});

test("a 304 for another representation does not confirm the stored one", async t => {
  const { time, server, get } = await world(t, (request, response, number) => {
    response.setHeader("cache-control", "max-age=60");
    if (request.headers["if-none-match"] !== undefined) response.setHeader("etag", '"two"').writeHead(304).end();
    else response.setHeader("etag", '"one"').end(`body ${number}`);
  });
  await get();
  await time.advance(60_000);
  assert.equal((await get()).text, "body 3");
  assert.equal(server.requests.length, 3);
});

const trouble: Record<string, { readonly handler: Handler; readonly options?: TestHubOptions }> = {
  "the answer is a 503": { handler: (_, response) => response.writeHead(503).end("down") },
  "the answer is a 429": { handler: (_, response) => response.writeHead(429).end("slow down") },
  "the connection breaks": { handler: request => request.socket.resetAndDestroy() },
};

for (const [what, { handler }] of Object.entries(trouble)) {
  test(`stale-if-error serves the stored response when ${what}`, async t => {
    const { time, get, verdicts } = await world(t, (request, response, number) => {
      if (number > 1) handler(request, response, number);
      else response.setHeader("cache-control", "max-age=60, stale-if-error=600").end("older");
    });
    await get();
    await time.advance(100_000);
    const answer = await get();
    assert.deepEqual({ status: answer.status, text: answer.text }, { status: 200, text: "older" });
    assert.equal(answer.headers.get("age"), "100");
    await time.advance(560_001);
    await get().then(
      ({ status }) => assert.notEqual(status, 200),
      () => undefined,
    );
    assert.deepEqual(verdicts(), ["miss", "stale", "miss"]);
  });
}

test("stale-if-error serves the stored response when the circuit is open or the limiter refuses, without a request", async t => {
  const { time, server, hub, get, verdicts } = await world(
    t,
    (request, response, number) => {
      if (request.url === "/") response.setHeader("cache-control", "max-age=60, stale-if-error=6000").end("older");
      else response.writeHead(number === 2 ? 200 : 503, { "retry-after": "300" }).end();
    },
    { limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } } },
  );
  await get();
  await time.advance(60_000);
  await get("/takes the token");
  assert.equal((await get()).text, "older");
  await time.advance(1000);
  await get("/opens");
  assert.equal(hub.snapshot().hosts[0]?.state, "open");
  assert.equal((await get()).text, "older");
  assert.equal(server.requests.length, 3);
  assert.deepEqual(verdicts(), ["miss", "miss", "stale", "miss", "stale"]);
});

test("a call with a stored response does not wait for retries", async t => {
  const { time, server, get } = await world(
    t,
    (_, response, number) => {
      if (number > 1) response.writeHead(503).end();
      else response.setHeader("cache-control", "max-age=60, stale-if-error=600").end("older");
    },
    { retry: { attempts: 5 } },
  );
  await get();
  await time.advance(60_000);
  assert.equal((await get()).text, "older");
  assert.equal(server.requests.length, 2);
});

test("stale-while-revalidate serves all callers at once and sends one request", async t => {
  const { time, server, hub, get, verdicts } = await world(t, tagged("max-age=60, stale-while-revalidate=600"));
  await get();
  await time.advance(61_000);
  const answers = await Promise.all(Array.from({ length: 10 }, () => get()));
  assert.deepEqual(new Set(answers.map(({ text }) => text)), new Set(["tagged"]));
  await until(() => verdicts().length === 12);
  assert.equal(server.requests.length, 2);
  assert.equal(hub.snapshot().inFlight, 0);
  assert.deepEqual(verdicts(), ["miss", ...Array(10).fill("stale"), "revalidated"]);
  assert.equal((await get()).headers.get("age"), "0");
  assert.equal(server.requests.length, 2);
});

test("only-if-cached and offline never use the network", async t => {
  const { time, server, get } = await world(t, fresh);
  assert.equal((await get("/", { headers: { "cache-control": "only-if-cached" } })).status, 504);
  const offline = await get("/", { offline: true });
  assert.deepEqual(
    { status: offline.status, verdict: offline.headers.get("cache-status"), text: offline.text },
    {
      status: 504,
      verdict: "docstokg; detail=offline",
      text: "docstokg: the cache has no response that may be served, and this request may not use the network (offline or only-if-cached)\n",
    },
  );
  await get();
  assert.equal((await get("/", { headers: { "cache-control": "only-if-cached" } })).text, "body 1");
  await time.advance(60_000);
  assert.equal((await get("/", { headers: { "cache-control": "only-if-cached" } })).status, 504);
  assert.equal((await get("/", { offline: true })).text, "body 1", "an offline call gets a stale response");
  assert.equal((await get("/", { offline: true, role: "artifact" })).status, 504);
  assert.equal(server.requests.length, 1);
});

for (const control of ["no-cache", "max-age=0, must-revalidate"])
  test(`an offline call gets a stored response with ${control}`, async t => {
    const { server, get } = await world(t, tagged(control));
    const { text } = await get();
    const offline = await get("/", { offline: true });
    assert.deepEqual([offline.status, offline.text], [200, text]);
    assert.equal(server.requests.length, 1);
  });

test("a HEAD within stale-while-revalidate refreshes the stored body with a GET", async t => {
  const { time, server, get, hub } = await world(t, (_, response, number) =>
    response.setHeader("cache-control", "max-age=60, stale-while-revalidate=600").end(`body ${number}`),
  );
  await get();
  await time.advance(61_000);
  assert.equal((await get("/", { method: "HEAD" })).text, "");
  await until(() => server.requests.length === 2 && hub.snapshot().inFlight === 0);
  assert.equal(server.requests[1]?.method, "GET");
  assert.equal((await get()).text, "body 2");
  assert.equal(server.requests.length, 2);
});

/** What a HEAD gets for a stored response that is stale, and what the server got. */
async function headOfStale(t: Parameters<typeof serve>[0], control: string, later: Handler, call: CallOptions = {}) {
  const stored = await world(t, (request, response, number) => {
    if (number === 1) response.writeHead(200, { "cache-control": control, etag: '"one"' }).end("stored");
    else later(request, response, number);
  });
  await stored.get();
  await stored.time.advance(2000);
  const head = async () => {
    const { status, text, headers } = await stored.get("/", { method: "HEAD", ...call });
    return [status, text, headers.get("cache-status")];
  };
  return { ...stored, head };
}

const STALE = [200, "", "docstokg; hit; detail=stale"];

for (const [what, { handler }] of Object.entries(trouble))
  test(`a HEAD gets the head of a stored response by stale-if-error when ${what}`, async t => {
    const { head, server, verdicts } = await headOfStale(t, "max-age=1, stale-if-error=600", handler);
    assert.deepEqual(await head(), STALE);
    assert.equal(server.requests[1]?.method, "HEAD");
    assert.deepEqual(verdicts(), ["miss", "stale"]);
  });

test("a HEAD gets the head of a stored response while the circuit is open, without a request", async t => {
  const { head, hub, server } = await headOfStale(t, "max-age=1, stale-if-error=600", () => undefined);
  hub.breakers.open("127.0.0.1", { seconds: 600 });
  assert.deepEqual(await head(), STALE);
  assert.equal(server.requests.length, 1);
});

for (const [control, expected] of [
  ["max-age=1", STALE],
  ["max-age=1, must-revalidate", [504, "", "docstokg; fwd=stale; detail=disconnected"]],
] as const)
  test(`a HEAD with staleOnDisconnect gets a ${expected[0]} for a stored response with ${control}`, async t => {
    const cut: Handler = request => request.socket.resetAndDestroy();
    const { head } = await headOfStale(t, control, cut, { staleOnDisconnect: true });
    assert.deepEqual(await head(), expected);
  });

test("a HEAD revalidates a stored response, whose body is then served again", async t => {
  const { head, get, server, verdicts } = await headOfStale(t, "max-age=1", (request, response) => {
    if (request.headers["if-none-match"] === '"one"') response.writeHead(304, { "cache-control": "max-age=60" }).end();
  });
  assert.deepEqual(await head(), [200, "", "docstokg; fwd=stale; fwd-status=304"]);
  assert.equal((await get()).text, "stored");
  assert.equal(server.requests.length, 2);
  assert.deepEqual(verdicts(), ["miss", "revalidated", "hit"]);
});

test("the response to a HEAD neither replaces nor removes the stored one, and GETs are still sent as one", async t => {
  const { head, get, server } = await headOfStale(t, "max-age=1", (request, response) => {
    response.setHeader("etag", '"one"');
    if (request.method === "HEAD") response.setHeader("cache-control", "no-store").end();
    else response.writeHead(304).end();
  });
  assert.equal((await head())[0], 200);
  const gets = await Promise.all([get(), get()]);
  assert.deepEqual(
    gets.map(({ text }) => text),
    ["stored", "stored"],
  );
  assert.equal(server.requests.length, 3);
});

test("offline never uses the network without a cache either", async t => {
  const { server, get } = await world(t, fresh, { cache: false });
  assert.equal((await get("/", { offline: true })).status, 504);
  assert.equal(server.requests.length, 0);
});

test("Cache-Control of a request is obeyed", async t => {
  const { time, server, get } = await world(t, fresh);
  const having = (control: string) => get("/", { headers: { "cache-control": control } });
  assert.equal((await having("no-store")).text, "body 1");
  assert.equal((await get()).text, "body 2", "the response to a no-store request was not stored");
  await time.advance(30_000);
  assert.equal((await having("max-age=30")).text, "body 2");
  assert.equal((await having("max-age=29")).text, "body 3");
  await time.advance(30_000);
  assert.equal((await having("min-fresh=30")).text, "body 3");
  assert.equal((await having("min-fresh=31")).text, "body 4");
  await time.advance(90_000);
  assert.equal((await having("max-stale=30")).text, "body 4");
  assert.equal((await having("no-cache")).text, "body 5");
  assert.equal(server.requests.length, 5);
});

test("a successful unsafe request removes the stored response", async t => {
  const { server, get } = await world(t, (request, response, number) =>
    request.resume().on("end", () => fresh(request, response, number)),
  );
  await get();
  await get("/", { method: "POST", body: "x" });
  assert.equal((await get()).text, "body 3");
  assert.equal(server.requests.length, 3);
});

test("artifacts are not cached", async t => {
  const { server, get } = await world(t, fresh);
  await get("/", { role: "artifact" });
  await get("/", { role: "artifact" });
  assert.equal(server.requests.length, 2);
});

test("variants are selected by the headers in Vary, and by the credentials", async t => {
  const { server, get } = await world(t, (request, response, number) => {
    response.setHeader("vary", "accept");
    fresh(request, response, number);
  });
  const as = (headers: Record<string, string>) => get("/", { headers });
  assert.equal((await as({ accept: "a/b" })).text, "body 1");
  assert.equal((await as({ accept: "c/d" })).text, "body 2");
  assert.equal((await as({ accept: "a/b", authorization: "Bearer one" })).text, "body 3");
  assert.equal((await as({ accept: "a/b", authorization: "Bearer two" })).text, "body 4");
  assert.equal((await as({ accept: "a/b" })).text, "body 1");
  assert.equal((await as({ accept: "a/b", authorization: "Bearer one" })).text, "body 3");
  assert.equal(server.requests.length, 4);
});

test("responses to different credentials in any header are never shared", async t => {
  const { server, get } = await world(t, fresh);
  const as = async (headers: Record<string, string>) => (await get("/", { headers })).text;
  for (const name of ["authorization", "cookie", "x-api-key", "private-token", "x-client-secret", "x-session-id"]) {
    server.requests.length = 0;
    await get("/", { method: "DELETE" });
    const [none, one, two] = [await as({}), await as({ [name]: "one" }), await as({ [name]: "two" })];
    assert.equal(new Set([none, one, two]).size, 3, name);
    assert.deepEqual([await as({ [name]: "two" }), await as({}), await as({ [name]: "one" })], [two, none, one], name);
    assert.equal(server.requests.length, 4, name);
  }
  // The first response has the credentials.
  await get("/", { method: "DELETE" });
  const withKey = await as({ "x-api-key": "one" });
  assert.notEqual(await as({}), withKey);
  assert.notEqual(await as({ "x-api-key": "one", "x-token": "one" }), withKey);
});

test("partitions never share a cached response, and neither do calls with and without one", async t => {
  const { server, get, hub } = await world(t, fresh);
  const as = async (partition?: string) => (await get("/", { partition })).text;
  const partitions = [undefined, "a", "b", "a, b", "a,b", '"a"', "a\nb"];
  const first = [];
  for (const partition of partitions) first.push(await as(partition));
  assert.equal(new Set(first).size, partitions.length);
  const again = [];
  for (const partition of partitions) again.push(await as(partition));
  assert.deepEqual(again, first);
  assert.equal(server.requests.length, partitions.length);
  assert.equal(await hub.with({ partition: "b" }, () => as()), first[2]);
});

test("requests in flight of different partitions are not coalesced", async t => {
  const { server, get, verdicts } = await world(t, fresh);
  await Promise.all([get("/", { partition: "a" }), get("/", { partition: "b" }), get("/", { partition: "a" })]);
  assert.equal(server.requests.length, 2);
  assert.equal(verdicts().filter(verdict => verdict === "coalesced").length, 1);
});

test("events have a hash of the partition, and errors do not quote it", async t => {
  const { get, events } = await world(t, fresh);
  await get("/", { partition: "secret-key" });
  assert.match(only(events, "http_request")[0]?.partition ?? "", /^[0-9a-f]{16}$/);
  assert.ok(!JSON.stringify(events).includes("secret-key"));
  await assert.rejects(get("/", { partition: "" }), /partition must be a text that is not empty/);
});

test("a HEAD is served from a stored GET", async t => {
  const { server, get } = await world(t, fresh);
  await get();
  const head = await get("/", { method: "HEAD" });
  assert.deepEqual({ status: head.status, text: head.text }, { status: 200, text: "" });
  assert.equal(server.requests.length, 1);
});

test("an incomplete body is not stored", async t => {
  let cut: () => unknown = () => assert.fail("no request came");
  const { server, get } = await world(t, (_, response, number) => {
    response.writeHead(200, { "cache-control": "max-age=60", "content-length": "10" }).write("half");
    if (number > 1) response.end(" whole");
    cut = () => response.destroy();
  });
  const first = get();
  await until(() => server.requests.length === 1);
  cut();
  await assert.rejects(first);
  assert.equal((await get()).text, "half whole");
});

test("conditional requests and requests for several ranges bypass the cache", async t => {
  const { server, get } = await world(t, fresh);
  await get();
  await get("/", { headers: { range: "bytes=0-1,3-4" } });
  await get("/", { headers: { "if-none-match": '"mine"' } });
  await get("/", { headers: { "if-range": '"mine"' } });
  await get("/", { method: "HEAD", headers: { range: "bytes=0-1" } });
  assert.equal(server.requests.length, 5);
});

test("the response to a POST with its own URL and a lifetime answers later GETs", async t => {
  const { server, get } = await world(t, (request, response, number) => {
    request.resume();
    response.setHeader("content-location", "/state").setHeader("cache-control", "max-age=60").end(`body ${number}`);
  });
  assert.equal((await get("/state", { method: "POST", body: "x" })).text, "body 1");
  assert.equal((await get("/state")).text, "body 1");
  assert.equal((await get("/state", { headers: { authorization: "other" } })).text, "body 2");
  assert.equal((await get("/other", { method: "POST", body: "x" })).text, "body 3");
  assert.equal((await get("/other")).text, "body 4");
  assert.equal((await get("/state", { method: "POST", body: "x", role: "artifact" })).text, "body 5");
  assert.equal((await get("/state")).text, "body 6", "the POST removed it");
  assert.equal(server.requests.length, 6);
});

test("with staleOnDisconnect a stale response is served when the host cannot be reached, at the first failure", async t => {
  const { server, get, time, hub } = await world(
    t,
    (request, response, number) => {
      if (number > 1) request.socket.resetAndDestroy();
      else fresh(request, response, number);
    },
    { retry: {} },
  );
  await get();
  await time.advance(86_400_000);
  const stale = await get("/", { staleOnDisconnect: true });
  assert.equal(stale.text, "body 1");
  assert.equal(stale.headers.get("cache-status"), "docstokg; hit; detail=stale");
  assert.equal(server.requests.length, 2);
  assertNothingLeft(hub);
});

test("staleOnDisconnect covers an open circuit, but neither an error status nor a refusal by a rate limit", async t => {
  let status = 200;
  const { server, get, time, hub } = await world(
    t,
    (_, response) =>
      response.writeHead(status, status === 200 ? { "cache-control": "max-age=1" } : {}).end(`body ${status}`),
    {
      breakers: { defaults: { fail_max: 1, roles: { metadata: { fail_max: 1, reset_timeout_s: 600 } } } },
      limits: { defaults: { metadata: { rates: "2/MINUTE", guard_ms: 0, max_delay_ms: 0 } } },
    },
  );
  await get();
  await get("/other");
  await time.advance(2000);
  await assert.rejects(get("/", { staleOnDisconnect: true }), { code: "DOCSTOKG_RATE_LIMITED" });
  await time.advance(60_000);
  status = 500;
  assert.equal((await get("/", { staleOnDisconnect: true })).text, "body 500", "the host can be reached");
  assert.equal((await get("/", { staleOnDisconnect: true })).text, "body 200");
  await assert.rejects(get("/"), { code: "DOCSTOKG_BREAKER_OPEN" });
  assert.equal(server.requests.length, 3);
  assertNothingLeft(hub);
});

test("with staleOnDisconnect a response that must be revalidated becomes a 504, and one that is not stored an error", async t => {
  for (const control of ["max-age=1, must-revalidate", "no-cache"]) {
    const { get, time } = await world(t, (request, response, number) => {
      if (number > 1) request.socket.resetAndDestroy();
      else response.setHeader("cache-control", control).setHeader("etag", '"one"').end("body");
    });
    await get();
    await time.advance(5000);
    const { status, headers } = await get("/", { staleOnDisconnect: true });
    assert.equal(status, 504, control);
    assert.equal(headers.get("cache-status"), "docstokg; fwd=stale; detail=disconnected");
    await assert.rejects(get("/other", { staleOnDisconnect: true }), { message: "fetch failed" });
    await assert.rejects(get("/"), { message: "fetch failed" }, "without the option");
  }
});

test("a cache file outlives its hub, and two hubs share it", async t => {
  const folder = temporaryFolder("cache");
  const cache = `sqlite:${join(folder, "http.db")}` as const;
  const first = await world(t, tagged("max-age=60"), { cache });
  await first.get();
  const second = await hubFor(t, { time: first.time, cache });
  const shared = await second.fetch(`${first.server.origin}/`);
  assert.equal(shared.headers.get("cache-status"), "docstokg; hit");
  assert.equal(await shared.text(), "tagged");
  await first.hub.close();
  await second.close();
  await first.time.advance(60_000);
  const third = await hubFor(t, { time: first.time, cache });
  const revalidated = await third.fetch(`${first.server.origin}/`);
  assert.equal(revalidated.headers.get("cache-status"), "docstokg; fwd=stale; fwd-status=304");
  assert.equal((await third.fetch(`${first.server.origin}/`)).headers.get("cache-status"), "docstokg; hit");
  assert.equal(first.server.requests.length, 2);
});

test("a cache file that cannot be opened is reported, and requests continue without it", async t => {
  const troubles: string[] = [];
  const server = await serve(t, fresh);
  const hub = await hubFor(t, {
    cache: `sqlite:${join(import.meta.filename, "not-a-folder.db")}`,
    telemetry: [event => void (event.event_type === "cache_trouble" && troubles.push(event.message))],
  });
  assert.equal(await (await hub.fetch(server.origin)).text(), "body 1");
  assert.equal(await (await hub.fetch(server.origin)).text(), "body 2");
  assert.equal(troubles.length, 1);
});

test("GET requests with a body are neither served from the cache nor coalesced", async t => {
  const server = await serve(t, async (request, response) => {
    const requestBody = (await request.toArray()).join("");
    response.setHeader("cache-control", "max-age=60").end(`about ${requestBody}`);
  });
  const hub = await hubFor(t, { time: new FakeTime() });
  const ask = async (body: string | null) => (await hub.request(server.origin, { method: "GET", body })).body.text();
  assert.deepEqual(await Promise.all([ask("one"), ask("two")]), ["about one", "about two"]);
  assert.equal(await ask("three"), "about three");
  assert.equal(await ask("three"), "about three");
  assert.equal(server.requests.length, 4);
  assert.equal(await ask(null), "about ");
});

test("a background revalidation whose response is endless and not storable is aborted", async t => {
  let isClosed = false;
  const server = await serve(t, (_, response, number) => {
    if (number === 1) {
      response.writeHead(200, { etag: '"one"', "cache-control": "max-age=60, stale-while-revalidate=600" }).end("old");
      return;
    }
    response.on("close", () => {
      isClosed = true;
    });
    response.writeHead(200, { "cache-control": "no-store" }).write(Buffer.alloc(1_048_576));
  });
  const time = new FakeTime();
  const hub = await hubFor(t, { time });
  await (await hub.fetch(server.origin)).text();
  await time.advance(61_000);
  assert.equal(await (await hub.fetch(server.origin)).text(), "old");
  await until(() => isClosed);
  assertNothingLeft(hub, time);
});

test("time in the queue does not add to the age of a response, whether it is new or revalidated", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    const isKnown = request.headers["if-none-match"] !== undefined;
    response.writeHead(isKnown ? 304 : 200, { etag: '"one"', "cache-control": "max-age=30" }).end();
  });
  const hub = await hubFor(t, { time, limits: ONE_A_MINUTE });
  const ageAfter = async (waitMs: number) => {
    const waiting = hub.fetch(server.origin);
    await until(() => hub.snapshot().waiting === 1);
    await time.advance(waitMs);
    await (await waiting).text();
    const { status, headers } = await hub.fetch(server.origin, { headers: { "cache-control": "only-if-cached" } });
    return { status, age: headers.get("age") };
  };
  await (await hub.fetch(`${server.origin}/other`)).text();
  assert.deepEqual(await ageAfter(60_000), { status: 200, age: "0" });
  // The entry is stale, and the next request may be sent in half a minute.
  await time.advance(31_000);
  assert.deepEqual(await ageAfter(29_000), { status: 200, age: "0" });
  assert.equal(server.requests.length, 3);
});

test("an only-if-cached request starts no background revalidation", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) =>
    response.writeHead(200, { etag: '"one"', "cache-control": "max-age=60, stale-while-revalidate=600" }).end("old"),
  );
  const hub = await hubFor(t, { time });
  await (await hub.fetch(server.origin)).text();
  await time.advance(61_000);
  const answer = await hub.fetch(server.origin, { headers: { "cache-control": "only-if-cached" } });
  assert.equal(await answer.text(), "old");
  // Closing waits for the background revalidation.
  await hub.close();
  assert.equal(server.requests.length, 1);
});

for (const client of ["fetch", "request"] as const) {
  test(`a revalidation that is aborted in the queue ends at once and is never sent (${client})`, async t => {
    const time = new FakeTime();
    const server = await serve(t, (_, response) =>
      response.writeHead(200, { etag: '"one"', "cache-control": "max-age=1" }).end("ok"),
    );
    const hub = await hubFor(t, {
      time,
      limits: { defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 100_000 } } },
    });
    await (await hub.fetch(server.origin)).text();
    await time.advance(2000);
    const controller = new AbortController();
    const waiting = hub[client](server.origin, { signal: controller.signal });
    await until(() => hub.snapshot().waiting === 1);
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    assertNothingLeft(hub, time);
    await time.advance(60_000);
    assert.equal(server.requests.length, 1);
  });
}

for (const [recogniser, options, call] of [
  ["a rule of the policy", { breakers: { defaults: { throttles: [{ status: [404], body: "slow down" }] } } }, {}],
  ["the option outcome", {}, { outcome: () => "throttled" as const }],
  ["the option outcome as a failure", {}, { outcome: () => "failure" as const }],
] as const)
  test(`a response of any status that ${recogniser} recognises is not stored`, async t => {
    const slow: Handler = (_, response) => {
      response.writeHead(404, { "cache-control": "max-age=60", "content-type": "text/plain" }).end("slow down");
    };
    const { get, hub } = await world(t, slow, options);
    assert.equal((await get("/", call)).status, 404);
    assert.equal(hub.snapshot().cache?.entries, 0);
  });

test("a newer response that is not stored removes the stored one", async t => {
  const plain: Handler = (_, response, number) => response.end(`body ${number}`);
  const { get, verdicts } = await world(t, plain);
  const withLifetime = { cacheLifetimeMs: 60_000 };
  await get("/", withLifetime);
  assert.equal((await get("/", { cache: "reload" })).text, "body 2");
  assert.equal((await get("/", withLifetime)).text, "body 3");
  assert.deepEqual(verdicts(), ["miss", "miss", "miss"]);
});

test("a failure that is not stored does not remove the stored response", async t => {
  const failing: Handler = (_, response, number) => response.writeHead(number === 2 ? 500 : 200).end(`body ${number}`);
  const { get } = await world(t, failing);
  await get("/", { cacheLifetimeMs: 60_000 });
  assert.equal((await get("/", { cache: "reload" })).status, 500);
  assert.equal((await get("/", { cacheLifetimeMs: 60_000 })).text, "body 1");
});

test("a stored response whose body cannot be read is requested again in full after the 304, once for all callers", async t => {
  const file = join(temporaryFolder("cache"), "cache.db");
  const { server, get, hub } = await world(t, tagged("no-cache"), { cache: `sqlite:${file}` });
  await get();
  const db = new DatabaseSync(file);
  db.exec("UPDATE bodies SET body = x'00'");
  db.close();
  const answers = await Promise.all([get(), get(), get()]);
  assert.deepEqual(
    answers.map(({ text }) => text),
    ["tagged", "tagged", "tagged"],
  );
  assert.equal(server.requests.length, 3);
  assert.equal((await get()).headers.get("cache-status"), "docstokg; fwd=stale; fwd-status=304");
  assertNothingLeft(hub);
});
