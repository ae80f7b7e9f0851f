import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import {
  type Handler,
  hubFor,
  only,
  recordEvents,
  sendLargeBody,
  serve,
  settles,
  type TestHubOptions,
  until,
} from "../../test/http/kit.ts";
import type { CacheMode } from "../core/cache/cache-control.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { FetchCall } from "./fetch-call.ts";

interface Init extends RequestInit {
  readonly cache?: CacheMode;
}
type Fetch = (input: string | Request, init?: Init) => Promise<Response>;

const CREDENTIALS = {
  authorization: "Bearer s",
  cookie: "sid=s",
  "x-api-key": "s",
  "private-token": "s",
  "x-client-secret": "s",
};

/** Every test runs through `hub.fetch` and through the global fetch of an installed hub. */
async function world(t: Parameters<typeof serve>[0], way: string, handler: Handler, limits: TestHubOptions = {}) {
  const time = new FakeTime();
  const server = await serve(t, handler);
  const hub = await hubFor(t, { time, retry: false, ...limits });
  if (way === "install") t.after(hub.install());
  const fetcher: Fetch = way === "install" ? globalThis.fetch : (hub.fetch as Fetch);
  const events = recordEvents(hub);
  const get = async (input: string | Request, init?: Init) => {
    const response = await fetcher(input, init);
    return { status: response.status, text: await response.text(), response };
  };
  return { time, server, hub, events, get };
}

const ONE_SLOT: TestHubOptions = {
  limits: { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 0, max_concurrent: 1 } } },
};
const fresh: Handler = (_, response, number) => response.setHeader("cache-control", "max-age=60").end(`body ${number}`);

for (const way of ["hub.fetch", "install"]) {
  test(`${way}: every credential stays with its origin when fetch follows a redirect`, async t => {
    const other = await serve(t, (request, response) => {
      if (request.url === "/back") response.writeHead(302, { location: `${server.origin}/end` }).end();
      else response.end("there");
    });
    const { server, get } = await world(t, way, (request, response) => {
      if (request.url === "/away") response.writeHead(307, { location: `${other.origin}/back` }).end();
      else if (request.url === "/near") response.writeHead(302, { location: "/end" }).end();
      else response.end("end");
    });
    const headers = { ...CREDENTIALS, accept: "text/plain", "x-keyword": "kept" };
    const { text, response } = await get(`${server.origin}/away`, { headers });
    assert.equal(text, "end");
    assert.equal(response.url, `${server.origin}/end`);
    assert.equal(response.redirected, true);
    const seen = [server.requests[0], other.requests[0], server.requests[1]].map(request =>
      Object.keys(headers).filter(name => request?.headers[name] !== undefined),
    );
    assert.deepEqual(seen, [Object.keys(headers), ["accept", "x-keyword"], ["accept", "x-keyword"]]);

    await get(`${server.origin}/near`, { headers });
    const near = server.requests.at(-1)?.headers;
    assert.equal(near?.["x-api-key"], "s", "a redirect within the origin keeps them");
    await get(`${other.origin}/end`, { headers });
    assert.equal(other.requests.at(-1)?.headers["x-api-key"], "s", "another call is no redirect");
  });

  test(`${way}: concurrent calls do not take each other's requests for redirects`, async t => {
    const other = await serve(t, (_, response) => response.end("other"));
    const { server, get } = await world(t, way, (_, response) => response.end("one"));
    const urls = Array.from({ length: 10 }, (_, at) => `${at % 2 === 0 ? server.origin : other.origin}/${at}`);
    await Promise.all(urls.map(url => get(url, { headers: CREDENTIALS })));
    for (const { headers } of [...server.requests, ...other.requests]) assert.equal(headers["x-api-key"], "s");
  });

  test(`${way}: a redirect is followed although the hub is being closed, and close waits for it`, async t => {
    const { server, get, hub } = await world(t, way, (request, response) => {
      if (request.url === "/away") closed = hub.close();
      if (request.url === "/end") response.end("end");
      else response.writeHead(302, { location: "/end" }).end();
    });
    let closed: Promise<void> | undefined;
    assert.equal((await get(`${server.origin}/away`)).text, "end");
    await settles(closed ?? Promise.reject(new Error("not closed")));
  });

  test(`${way}: a redirect that the caller follows itself does not delay close`, async t => {
    const { server, get, hub } = await world(t, way, (_, response) =>
      response.writeHead(302, { location: "/end" }).end(),
    );
    assert.equal((await get(server.origin, { redirect: "manual" })).status, 302);
    await settles(hub.close());
    await assert.rejects(get(server.origin), error => {
      const { name, cause } = error as Error;
      return name === "HubClosedError" || (cause as Error).name === "HubClosedError";
    });
  });

  test(`${way}: a redirect whose body never ends gives up the only slot for the next hop`, async t => {
    for (const isEndless of [false, true]) {
      const { server, hub, get, time } = await world(
        t,
        way,
        (request, response) => {
          if (request.url === "/end") response.end("end");
          else response.writeHead(302, { location: "/end" }).write("moved");
          if (request.url === "/flood") sendLargeBody(response);
        },
        ONE_SLOT,
      );
      const got = get(`${server.origin}/${isEndless ? "flood" : "drip"}`);
      await until(() => server.requests.length === 1);
      if (!isEndless) {
        const [redirect] = server.requests;
        // The next hop waits for the slot.
        await until(() => hub.snapshot().waiting === 1);
        await time.advance(999);
        assert.equal(server.requests.length, 1);
        await time.advance(1);
        await until(() => redirect?.socket.destroyed === true);
      }
      assert.equal((await settles(got)).text, "end");
    }
  });

  test(`${way}: a redirect whose body breaks off is followed`, async t => {
    const { server, get } = await world(
      t,
      way,
      (request, response) => {
        if (request.url === "/end") response.end("end");
        else {
          response.writeHead(302, { location: "/end", "content-length": "100" }).write("moved");
          setImmediate(() => response.destroy());
        }
      },
      ONE_SLOT,
    );
    assert.equal((await settles(get(server.origin))).text, "end");
  });

  test(`${way}: a redirect that the caller reads itself is not cut short`, async t => {
    let body: ServerResponse | undefined;
    const { server, get, time } = await world(t, way, (_, response) => {
      body = response.writeHead(302, { location: "/end" });
      body.write("a");
    });
    const got = get(server.origin, { redirect: "manual" });
    await until(() => body !== undefined);
    await time.advance(100_000);
    body?.end("b".repeat(100_000));
    assert.equal((await settles(got)).text.length, 100_001);
  });

  test(`${way}: no-store neither uses nor changes the cache`, async t => {
    const { server, get, hub } = await world(t, way, fresh);
    assert.equal((await get(server.origin, { cache: "no-store" })).text, "body 1");
    assert.equal(hub.snapshot().cache?.entries, 0);
    assert.equal((await get(server.origin)).text, "body 2");
    assert.equal((await get(server.origin, { cache: "no-store" })).text, "body 3");
    assert.equal((await get(server.origin)).text, "body 2");
  });

  test(`${way}: reload replaces the stored response, without a condition`, async t => {
    const { server, get } = await world(t, way, (request, response, number) => {
      response.setHeader("etag", '"one"');
      if (request.headers["if-none-match"] !== undefined) response.writeHead(304).end();
      else fresh(request, response, number);
    });
    await get(server.origin);
    assert.equal((await get(server.origin, { cache: "reload" })).text, "body 2");
    assert.equal((await get(server.origin)).text, "body 2");
    assert.equal(server.requests.length, 2);
  });

  test(`${way}: no-cache revalidates a fresh response`, async t => {
    const { server, get, events } = await world(t, way, (request, response, number) => {
      response.setHeader("etag", '"one"');
      if (request.headers["if-none-match"] === '"one"') response.writeHead(304).end();
      else fresh(request, response, number);
    });
    await get(server.origin);
    assert.equal((await get(server.origin, { cache: "no-cache" })).text, "body 1");
    assert.equal(server.requests.length, 2);
    assert.equal(only(events, "http_request").at(-1)?.revalidated, true);
  });

  test(`${way}: force-cache serves a stale response, and sends a request only when nothing is stored`, async t => {
    const { server, get, time } = await world(t, way, (_, response, number) =>
      response.setHeader("cache-control", "max-age=60, must-revalidate").end(`body ${number}`),
    );
    assert.equal((await get(server.origin, { cache: "force-cache" })).text, "body 1");
    await time.advance(86_400_000);
    assert.equal((await get(server.origin, { cache: "force-cache" })).text, "body 1");
    assert.equal(server.requests.length, 1);
    assert.equal((await get(server.origin)).text, "body 2");
  });

  test(`${way}: only-if-cached serves a stale response or a 504, and sends nothing`, async t => {
    const { server, get, time } = await world(t, way, fresh);
    const init = { cache: "only-if-cached", mode: "same-origin" } as const;
    const missing = await get(server.origin, init);
    assert.equal(missing.status, 504);
    assert.equal(missing.response.headers.get("cache-status"), "docstokg; detail=offline");
    assert.equal(server.requests.length, 0);
    await get(server.origin);
    await time.advance(86_400_000);
    assert.equal((await get(server.origin, init)).text, "body 1");
    assert.equal(server.requests.length, 1);
  });

  test(`${way}: the mode of a Request counts, and an option of the call overrides it`, async t => {
    const { server, get, hub } = await world(t, way, fresh);
    const request = () => new Request(server.origin, { cache: "no-store" } as RequestInit);
    await get(request());
    assert.equal(hub.snapshot().cache?.entries, 0);
    await get(request(), { cache: "default" });
    assert.equal(hub.snapshot().cache?.entries, 1);
  });
}

/** Replaces the global fetch, as a program may do before it installs a hub. */
function replaceFetch(t: Parameters<typeof serve>[0], around: (native: typeof fetch) => typeof fetch): void {
  const native = globalThis.fetch;
  t.after(() => {
    globalThis.fetch = native;
  });
  globalThis.fetch = around(native);
}

test("install: requests that a fetch of the program sends for one call are no redirects of each other", async t => {
  const auth = await serve(t, (_, response) => response.end("token"));
  replaceFetch(t, native => async (input, init) => {
    const token = await (await native(`${auth.origin}/token`, { headers: { "x-client-secret": "c" } })).text();
    return native(input, { ...init, headers: { ...CREDENTIALS, authorization: `Bearer ${token}` } });
  });
  const { server, get } = await world(t, "install", fresh);
  for (const init of [{}, {}, { cache: "reload" }] as const) await get(server.origin, init);
  assert.equal(server.requests.length, 2, "the first response is stored, and the mode of the call is kept");
  for (const { headers } of server.requests) {
    assert.equal(headers.authorization, "Bearer token");
    assert.equal(headers["x-api-key"], "s");
  }
  const offline = await get(server.origin, { cache: "only-if-cached", mode: "same-origin" });
  assert.equal(offline.text, "body 2");
  assert.equal(auth.requests.length, 4, "the mode of the call is not that of the request for the token");
});

test("install: each request of a fetch of the program loses its credentials when it is redirected", async t => {
  const far = await serve(t, (_, response) => response.end("far"));
  replaceFetch(t, native => async (input, init) => {
    const both = await Promise.all([native(input, init), native(`${String(input)}?second`, init)]);
    await Promise.all(both.map(response => response.text()));
    return native(`${far.origin}/data`, init);
  });
  const { server, get } = await world(t, "install", (request, response) =>
    response.writeHead(307, { location: `${far.origin}${request.url}` }).end(),
  );
  assert.equal((await get(`${server.origin}/`, { headers: CREDENTIALS })).text, "far");
  assert.deepEqual(Object.fromEntries(far.requests.map(({ url, headers }) => [url, headers["x-api-key"]])), {
    "/": undefined,
    "/?second": undefined,
    "/data": "s",
  });
});

test("install: a request that is sent again after a 421 has no credentials behind a redirect", async t => {
  const far = await serve(t, (_, response) => response.writeHead(421).end());
  const { server, get } = await world(t, "install", (_, response) =>
    response.writeHead(302, { location: `${far.origin}/far` }).end(),
  );
  assert.equal((await get(`${server.origin}/`, { headers: CREDENTIALS })).status, 421);
  assert.equal(far.requests.length, 2);
  for (const { headers } of far.requests) assert.equal(headers["x-api-key"], undefined);
});

test("install: a redirect that was not followed does not lend its credentials to another call", async t => {
  const far = await serve(t, (request, response) => {
    if (request.url === "/login") response.writeHead(302, { location: "/welcome" }).end();
    else response.end("far");
  });
  replaceFetch(t, native => async (input, init) => {
    await native(`${far.origin}/login`, { redirect: "manual" });
    return native(input, init);
  });
  const { server, get } = await world(t, "install", (_, response) =>
    response.writeHead(302, { location: `${far.origin}/far` }).end(),
  );
  assert.equal((await get(`${server.origin}/`, { headers: CREDENTIALS })).text, "far");
  assert.equal(far.requests.at(-1)?.headers["x-api-key"], undefined);
});

test("install: a call that the program's fetch sends to a mirror is not stored if it must not be", async t => {
  replaceFetch(t, native => (input, init) => native(String(input).replace("http://alias.invalid", base), init));
  const { server, get, hub } = await world(t, "install", fresh);
  const base = server.origin;
  await get("http://alias.invalid/x", { cache: "no-store" });
  assert.equal(hub.snapshot().cache?.entries, 0);
});

test("install: a call of the program's fetch with a path keeps its mode", async t => {
  replaceFetch(t, native => (input, init) => native(`${base}${String(input)}`, init));
  const { server, get, hub } = await world(t, "install", fresh);
  const base = server.origin;
  await get("/x", { cache: "no-store" });
  assert.equal(hub.snapshot().cache?.entries, 0);
});

test("a mode that fetch does not know counts as default until fetch refuses the call", () => {
  assert.equal(new FetchCall("https://example.org", { cache: "sometimes" }, 0).cacheMode, "default");
  assert.equal(new FetchCall("https://example.org", null, 0).cacheMode, "default");
  assert.equal(new FetchCall(new URL("https://example.org"), undefined, 0).cacheMode, "default");
});
