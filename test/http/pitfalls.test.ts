/**
 * What goes wrong when somebody sits between undici and its callers, by the numbers of the list that was made by running
 * it. Those that are not here have a test beside what they are about: queued bodies, aborts in line, unread bodies and
 * slots (7, 8, 13) in slots, Retry-After and back-off (11, 12) in retry, revalidation and stampedes (16, 17) in cache,
 * fan-out (19) in coalescing, closing and context (14, 15) in lifecycle, HTTP/2 and its cap (22) in answers, and the
 * file that several processes share (18) in cache-processes.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import type { AddressInfo, LookupFunction } from "node:net";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Agent, Dispatcher, interceptors, request as undiciRequest } from "undici";
import { RateLimitExceeded } from "../../src/errors.ts";
import type { Hub } from "../../src/http/hub.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, only, recordEvents, serve, until } from "./kit.ts";

function assertNothingLeft(hub: Hub, time?: FakeTime): void {
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual(
    { calls, inFlight, waiting, timers: time?.armedTimers ?? 0 },
    { calls: 0, inFlight: 0, waiting: 0, timers: 0 },
  );
}

/** Its callbacks are on the prototype and its state is private, as with undici's own: a copy of it would be no handler. */
class RecordingHandler implements Dispatcher.DispatchHandler {
  readonly #lines: string[] = [];
  readonly #end = Promise.withResolvers<void>();

  /** What it was told, when it was told the last thing. */
  async lines(): Promise<readonly string[]> {
    await this.#end.promise;
    // Whoever tells it too much does so soon.
    for (let turn = 0; turn < 20; turn += 1) await new Promise(done => setImmediate(done));
    return this.#lines;
  }

  onRequestStart(): void {
    this.#lines.push("start");
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#lines.push(`head ${status}`);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#lines.push(`data ${chunk}`);
  }

  onResponseEnd(): void {
    this.#lines.push("end");
    this.#end.resolve();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#lines.push(`error ${error.message}`);
    this.#end.resolve();
  }
}

function told(dispatcher: Dispatcher, origin: string, path = "/"): Promise<readonly string[]> {
  const notes = new RecordingHandler();
  assert.equal(dispatcher.dispatch({ origin, path, method: "GET" }, notes), true);
  return notes.lines();
}

/** A wire that does with each request what the test says. */
class FakeWire extends Dispatcher {
  readonly #dispatch: (handler: Dispatcher.DispatchHandler) => void;

  constructor(dispatch: (handler: Dispatcher.DispatchHandler) => void) {
    super();
    this.#dispatch = dispatch;
  }

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#dispatch(handler);
    return true;
  }
}

// 1
test("every attempt and every hop pays for itself, however they are nested", async t => {
  const server = await serve(t, (request, response, number) => {
    if (request.url === "/start") response.writeHead(302, { location: "/end" }).end();
    else response.writeHead(number < 4 ? 500 : 200).end("there");
  });
  const hub = await hubFor(t, { retry: { baseMs: 1 } });
  const events = recordEvents(hub);
  const { statusCode } = await hub.request(`${server.origin}/start`, { maxRedirections: 2 });
  assert.equal(statusCode, 200);
  assert.equal(server.requests.length, 4);
  assert.equal(only(events, "ratelimit.acquire").length, 4);
});

// 2
test("a handler with state of its own is told everything, once, with undici's interceptors around the hub", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const expected = ["start", "head 200", "data ok", "end"];
  assert.deepEqual(await told(hub.dispatcher(), server.origin), expected);
  const around = [interceptors.retry(), interceptors.redirect({ maxRedirections: 2 }), interceptors.cache()];
  for (const interceptor of around) {
    assert.deepEqual(await told(hub.dispatcher().compose(interceptor), server.origin), expected);
  }
  assert.deepEqual(await told(hub.dispatcher().compose(...around), server.origin), expected);
  assertNothingLeft(hub);
});

// 3
test("a wire that throws fails that one request, after dispatch has returned", async t => {
  const time = new FakeTime();
  const wire = new FakeWire(() => {
    throw new Error("out of order");
  });
  const hub = await hubFor(t, { time, dispatcher: wire });
  assert.deepEqual(await told(hub.dispatcher(), "http://example.org"), ["start", "error out of order"]);
  await assert.rejects(hub.request("http://example.org/"), /out of order/);
  await assert.rejects(hub.fetch("http://example.org/"), ({ cause }: Error) => /out of order/.test(String(cause)));
  assertNothingLeft(hub, time);
});

// 3
test("a refusal does not poison the key of undici's deduplication: the next call is served", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const dispatcher = hub.dispatcher().compose(interceptors.deduplicate());
  const send = async () => (await undiciRequest(server.origin, { dispatcher })).body.text();
  assert.equal(await send(), "ok");
  await assert.rejects(send(), RateLimitExceeded);
  await time.advance(1000);
  assert.equal(await send(), "ok");
  assertNothingLeft(hub, time);
});

// 4
test("undici's retry around the hub does not try our refusals again: each of them has a code", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time: new FakeTime(),
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const dispatcher = hub.dispatcher().compose(interceptors.retry({ minTimeout: 1, maxTimeout: 1 }));
  await (await undiciRequest(server.origin, { dispatcher })).body.text();
  await assert.rejects(undiciRequest(server.origin, { dispatcher }), { code: "DOCSTOKG_RATE_LIMITED" });
  assert.deepEqual(
    only(events, "ratelimit.acquire").map(({ outcome }) => outcome),
    ["granted", "refused"],
  );
});

// 5
test("a wire that fails a request before it has a controller for it is understood", async t => {
  const time = new FakeTime();
  const wire = new FakeWire(handler => {
    const failure = Object.assign(new Error("nobody there"), { code: "ECONNREFUSED" });
    handler.onResponseError?.(null as unknown as Dispatcher.DispatchController, failure);
  });
  const hub = await hubFor(t, { time, dispatcher: wire, retry: false });
  const events = recordEvents(hub);
  await assert.rejects(hub.request("http://example.org/"), /nobody there/);
  assert.equal(only(events, "breaker_failure").length, 1);
  assertNothingLeft(hub, time);
});

// 5
test("undici's interceptors around a hub that is closed get its error, without a controller as it is", async t => {
  const hub = await hubFor(t);
  await hub.close();
  for (const interceptor of [
    interceptors.retry(),
    interceptors.redirect({ maxRedirections: 2 }),
    interceptors.deduplicate(),
    interceptors.cache(),
    interceptors.dump(),
    interceptors.responseError(),
  ]) {
    const dispatcher = hub.dispatcher().compose(interceptor);
    await assert.rejects(undiciRequest("http://example.org/", { dispatcher }), { code: "DOCSTOKG_CLOSED" });
  }
});

// 6
test("a caller is started once however often its request is sent, and sees the interim answers of each", async t => {
  const server = await serve(t, (_, response, number) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    response.writeHead(number === 1 ? 503 : 200).end("ok");
  });
  const hub = await hubFor(t, { retry: { baseMs: 1 } });
  const events = recordEvents(hub);
  assert.deepEqual(await told(hub.dispatcher(), server.origin), [
    "start",
    "head 103",
    "head 103",
    "head 200",
    "data ok",
    "end",
  ]);
  assert.equal(await (await hub.fetch(`${server.origin}/again`)).text(), "ok");
  assert.deepEqual(
    only(events, "http_request").map(({ status }) => status),
    [200, 200],
    "an interim answer is not the answer",
  );
});

// 9
for (const client of ["fetch", "request"] as const) {
  test(`a revalidation that is aborted in line leaves at once and is never sent (${client})`, async t => {
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

// 10
test("a host is charged by its name, whichever address it is dialled at", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const lookup: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);
  const hub = await hubFor(t, { network: { lookup } });
  await (await hub.fetch(`http://one.example:${server.port}/`)).text();
  await (await hub.request(`http://TWO.example:${server.port}/`)).body.text();
  const { keys, hosts } = hub.snapshot();
  assert.deepEqual(
    { keys: keys.map(({ host }) => host), hosts: hosts.map(({ host }) => host) },
    { keys: ["one.example", "two.example"], hosts: ["one.example", "two.example"] },
  );
});

// 10
test("a wire that resolves names by itself changes nothing about whom they are charged to", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const agent = new Agent();
  t.after(() => agent.destroy());
  const dispatcher = agent.compose(interceptors.dns());
  const hub = await hubFor(t, { dispatcher });
  await (await hub.request(`http://localhost:${server.port}/`)).body.text();
  assert.deepEqual(
    hub.snapshot().keys.map(({ host }) => host),
    ["localhost"],
  );
});

// 20
for (const first of ["node:http", "undici"]) {
  test(`an installed hub gets every fetch, whether Node's undici or ours was loaded first (${first})`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    const source = pathToFileURL(resolve(import.meta.dirname, "../../src/http/create-hub.ts")).href;
    const undici = import.meta.resolve("undici");
    const code = `
      await import(${JSON.stringify(first === "undici" ? undici : first)});
      if (${first === "node:http"}) await (await fetch(${JSON.stringify(server.origin)})).text();
      const { createHub } = await import(${JSON.stringify(source)});
      const { fetch: ours, request } = await import(${JSON.stringify(undici)});
      const hub = await createHub({ env: {}, cache: false });
      let calls = 0;
      hub.listen(({ event_type }) => { if (event_type === "http_request") calls += 1; });
      const uninstall = hub.install();
      const all = async () => {
        await (await fetch(${JSON.stringify(server.origin)})).text();
        await (await ours(${JSON.stringify(server.origin)})).text();
        await (await request(${JSON.stringify(server.origin)})).body.text();
      };
      await all();
      uninstall();
      await all();
      await hub.close();
      console.log(calls);`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let stdout = "";
    child.stdout.on("data", chunk => {
      stdout += chunk;
    });
    await once(child, "close");
    assert.equal(stdout, "3\n");
  });
}

/** Answers with the version it was asked in. */
async function secure(t: TestContext): Promise<number> {
  const folder = join(import.meta.dirname, "..", "fixtures", "tls");
  const [cert, key] = ["cert.pem", "key.pem"].map(name => readFileSync(join(folder, name), "utf8"));
  const server = createSecureServer({ cert, key, allowHTTP1: true }, ({ httpVersion }, response) => {
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.end(httpVersion);
  });
  server.on("secureConnection", socket => t.after(() => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

// 21
test("Node's own fetch speaks HTTP/2 through a hub, installed or handed to it, and gets its fields whole", async t => {
  const port = await secure(t);
  const ca = readFileSync(join(import.meta.dirname, "..", "fixtures", "tls", "cert.pem"), "utf8");
  const hub = await hubFor(t, {
    cache: false,
    network: { tls: { ca }, connectTo: [`example.org:443:127.0.0.1:${port}`] },
  });
  const uninstall = hub.install();
  t.after(uninstall);
  const answers = [
    await fetch("https://example.org/"),
    await hub.fetch("https://example.org/"),
    await fetch("https://example.org/", { dispatcher: hub.dispatcher() } as unknown as RequestInit),
  ];
  uninstall();
  for (const answer of answers) {
    assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.equal(await answer.text(), "2.0");
  }
});
