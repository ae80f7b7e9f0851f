import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { assertNothingLeft, hubFor, only, recordEvents, serve, until } from "../../../test/http/kit.ts";
import { FakeWire } from "../../../test/http/wires.ts";
import { RedirectError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";

test("each hop uses the limits of its own host: when the second fails, only its circuit opens", async t => {
  const far = await serve(t, (_, response) => response.writeHead(503).end("down"));
  const near = await serve(t, (_, response) =>
    response.writeHead(302, { location: `http://far.example:${far.port}/file` }).end(),
  );
  const hub = await hubFor(t, {
    retry: false,
    breakers: { defaults: { fail_max: 5 } },
    network: { connectTo: [`near.example::127.0.0.1:${near.port}`, `far.example::127.0.0.1:${far.port}`] },
  });
  for (let call = 0; call < 5; call += 1) {
    const send = call % 2 ? hub.fetch : (url: string) => hub.request(url, { maxRedirections: 3 });
    await send(`http://near.example:${near.port}/start`);
  }
  const states = Object.fromEntries(hub.snapshot().hosts.map(({ host, state }) => [host, state]));
  assert.deepEqual(states, { "near.example": "closed", "far.example": "open" });
  assert.equal(near.requests.length, 5);
});

test("credentials in any header are not sent to another origin, but are on the same origin", async t => {
  const far = await serve(t, (_, response) => response.end("there"));
  const near = await serve(t, (request, response) => {
    if (request.url === "/start") response.writeHead(301, { location: "/middle" }).end();
    else response.writeHead(307, { location: `http://localhost:${far.port}/end` }).end();
  });
  const hub = await hubFor(t);
  const headers = {
    authorization: "Bearer a",
    cookie: "b=c",
    "x-api-key": "d",
    "crossref-plus-api-token": "e",
    accept: "text/plain",
  };
  const { body } = await hub.request(`${near.origin}/start`, { headers, maxRedirections: 5 });
  assert.equal(await body.text(), "there");
  assert.equal(near.requests[1]?.headers["authorization"], "Bearer a");
  const { authorization, cookie, accept, ...rest } = far.requests[0]?.headers ?? {};
  assert.deepEqual(
    { authorization, cookie, accept },
    { authorization: undefined, cookie: undefined, accept: "text/plain" },
  );
  assert.equal(rest["x-api-key"], undefined);
  assert.equal(rest["crossref-plus-api-token"], undefined);
});

test("a path that begins with two slashes names no host: a redirect stays at the server, with the credentials", async t => {
  const other = await serve(t, (_, response) => response.end("other"));
  const server = await serve(t, (request, response) => {
    if (request.url?.startsWith("//")) response.writeHead(302, { location: "/login" }).end();
    else response.end("login");
  });
  const hub = await hubFor(t);
  const options = { headers: { authorization: "Bearer a" }, maxRedirections: 3 };
  const { body } = await hub.request(`${server.origin}//127.0.0.1:${other.port}/x`, options);
  assert.equal(await body.text(), "login");
  assert.equal(server.requests[1]?.headers["authorization"], "Bearer a");
  assert.equal(other.requests.length, 0);
});

test("a relative redirect of a path that is a complete URL is relative to that URL", async t => {
  const wire = new FakeWire((handler, controller) => {
    const isFirst = wire.origins.length === 1;
    handler.onResponseStart?.(controller, isFirst ? 302 : 200, isFirst ? { location: "/b" } : {});
    handler.onResponseEnd?.(controller, {});
  });
  const hub = await hubFor(t, { dispatcher: wire });
  const dispatcher = hub.dispatcher({ maxRedirections: 1 });
  await dispatcher.request({ origin: "http://proxy.example/", path: "http://far.example/a", method: "GET" });
  assert.deepEqual(wire.origins, ["http://proxy.example/", "http://far.example"]);
});

test("a redirect loop and too many redirects are errors", async t => {
  const server = await serve(t, (request, response) => {
    const number = Number(request.url?.slice(1)) || 0;
    response.writeHead(302, { location: request.url === "/loop" ? "/loop" : `/${number + 1}` }).end();
  });
  const hub = await hubFor(t);
  await assert.rejects(hub.request(`${server.origin}/loop`, { maxRedirections: 20 }), RedirectError);
  assert.equal(server.requests.length, 1);
  await assert.rejects(hub.request(`${server.origin}/0`, { maxRedirections: 3 }), /more than 3 redirects/);
  assert.equal(server.requests.length, 5);
  assert.equal(hub.snapshot().inFlight, 0);
});

test("hub.request follows no redirect without maxRedirections", async t => {
  const server = await serve(t, (_, response) => response.writeHead(302, { location: "/x" }).end());
  const hub = await hubFor(t);
  assert.equal((await hub.request(server.origin)).statusCode, 302);
});

test("maxRedirections does not change how fetch treats redirects", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/start") response.writeHead(302, { location: "/end" }).end();
    else response.end("there");
  });
  const hub = await hubFor(t, { defaults: { maxRedirections: 5 } });
  const url = `${server.origin}/start`;
  assert.equal((await hub.fetch(url, { redirect: "manual" })).status, 302);
  const { url: last, redirected } = await hub.fetch(url);
  assert.deepEqual([last, redirected], [`${server.origin}/end`, true]);
  await assert.rejects(hub.fetch(url, { redirect: "error" }), TypeError);
  const dispatcher = hub.dispatcher({ maxRedirections: 5 });
  assert.equal((await fetch(url, { redirect: "manual", dispatcher } as never)).status, 302);
});

test("a POST becomes a GET after 302 and 303, and stays a POST with its body after 307", async t => {
  const bodies: string[] = [];
  const server = await serve(t, (request, response) => {
    let body = "";
    request.on("data", chunk => {
      body += chunk;
    });
    request.on("end", () => {
      bodies.push(`${request.method} ${body} ${request.headers["content-type"] ?? ""}`.trim());
      const status = Number(request.url?.slice(1));
      if (status > 0) response.writeHead(status, { location: "/done" }).end();
      else response.end("done");
    });
  });
  const hub = await hubFor(t);
  const options = { method: "POST", body: "x", headers: { "content-type": "a/b" }, maxRedirections: 2 } as const;
  for (const status of [302, 303, 307]) await (await hub.request(`${server.origin}/${status}`, options)).body.text();
  assert.deepEqual(bodies, ["POST x a/b", "GET", "POST x a/b", "GET", "POST x a/b", "POST x a/b"]);
});

test("a redirect to a URL that is not http or https is an error", async t => {
  const server = await serve(t, (_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end());
  const hub = await hubFor(t);
  await assert.rejects(hub.request(server.origin, { maxRedirections: 2 }), RedirectError);
});

test("a redirect is stored like any response, and its body is discarded without holding a slot", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/start")
      response.writeHead(301, { location: "/end", "cache-control": "max-age=60" }).end("x".repeat(30_000));
    else response.end("there");
  });
  const hub = await hubFor(t, { limits: { global: { max_inflight: 1 } } });
  const events = recordEvents(hub);
  for (let call = 0; call < 2; call += 1) {
    const { body } = await hub.request(`${server.origin}/start`, { maxRedirections: 2 });
    assert.equal(await body.text(), "there");
  }
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/start", "/end", "/end"],
  );
  assert.equal(only(events, "http_request").length, 2);
});

test("a redirect with an endless body is followed", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/end") {
      response.end("there");
      return;
    }
    response.writeHead(302, { location: "/end" });
    const more = () => {
      while (response.write(Buffer.alloc(65_536)));
    };
    response.on("drain", more);
    more();
  });
  const hub = await hubFor(t, { limits: { global: { max_inflight: 1 } } });
  const { body } = await hub.request(`${server.origin}/start`, { maxRedirections: 2 });
  assert.equal(await body.text(), "there");
});

test("the next hop is sent after 1 s when the body of the redirect does not end", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    if (request.url === "/start") response.writeHead(302, { location: "/end", "content-length": "10" }).write("x");
    else response.end("there");
  });
  const hub = await hubFor(t, { time, limits: { global: { max_inflight: 1 } } });
  const answer = hub.request(`${server.origin}/start`, { maxRedirections: 2 });
  await until(() => time.nextTimerMs === 1000);
  await time.advance(999);
  assert.equal(server.requests.length, 1);
  await time.advance(1);
  assert.equal(await (await answer).body.text(), "there");
  assertNothingLeft(hub, time);
});

test("a call is aborted while the body of a redirect does not end, and nothing is left", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => void response.writeHead(302, { location: "/end" }).write("x"));
  const hub = await hubFor(t, { time });
  const controller = new AbortController();
  const answer = hub.request(server.origin, { maxRedirections: 2, signal: controller.signal });
  await until(() => time.nextTimerMs === 1000);
  controller.abort(new Error("enough"));
  await assert.rejects(answer, /enough/);
  await until(() => hub.snapshot().inFlight === 0);
  assertNothingLeft(hub, time);
});

test("a hop waits in the queue of its own host, and can be aborted there", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    if (request.url === "/start") response.writeHead(302, { location: "/end" }).end();
    else response.end("there");
  });
  const hub = await hubFor(t, {
    time,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 5000 } } },
  });
  const controller = new AbortController();
  const answer = hub.request(`${server.origin}/start`, { maxRedirections: 2, signal: controller.signal });
  await until(() => hub.snapshot().waiting === 1);
  controller.abort(new Error("enough"));
  await assert.rejects(answer, /enough/);
  assert.equal(hub.snapshot().waiting, 0);
  await time.advance(5000);
  assert.equal(server.requests.length, 1);
});

test("a redirect from http to https is followed", async t => {
  const wire = new FakeWire((handler, controller) => {
    const isFirst = wire.origins.length === 1;
    handler.onResponseStart?.(controller, isFirst ? 301 : 200, isFirst ? { location: "https://example.org/" } : {});
    handler.onResponseEnd?.(controller, {});
  });
  const hub = await hubFor(t, { dispatcher: wire });
  const { statusCode } = await hub.request("http://example.org/", { maxRedirections: 1 });
  assert.equal(statusCode, 200);
  assert.deepEqual(wire.origins, ["http://example.org", "https://example.org"]);
});

test("a redirect that would send a stream twice is returned to the caller, and one that changes to GET is followed", async t => {
  const server = await serve(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    request.resume().on("end", () => response.writeHead(status, { location: "/200" }).end());
  });
  const hub = await hubFor(t);
  for (const [status, seen] of [
    [307, 307],
    [303, 200],
  ]) {
    const options = { method: "POST", body: Readable.from(["once"]), maxRedirections: 3 } as const;
    const { statusCode, body } = await hub.request(`${server.origin}/${status}`, options);
    await body.dump();
    assert.equal(statusCode, seen);
  }
  assert.deepEqual(
    server.requests.map(({ method, url }) => `${method} ${url}`),
    ["POST /307", "POST /303", "GET /200"],
  );
});
