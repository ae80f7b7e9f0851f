/** What could be broken in the hub without a test noticing, found by mutating it: each kills a mutant that lived. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { Dispatcher, getGlobalDispatcher, upgrade } from "undici";
import { RateLimitExceeded } from "../../src/errors.ts";
import type { CallOptions } from "../../src/http/call-options.ts";
import { createHub } from "../../src/http/create-hub.ts";
import type { Hub } from "../../src/http/hub.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, only, recordEvents, serve, type TestHubOptions, until } from "./kit.ts";

/** One request a second, and nobody waits. */
const ONE_A_SECOND = { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } };
/** The same, with a line for those who come too early. */
const QUEUED = { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 60_000 } } };

/** Notes down what it is told; one that is held pauses as soon as it is started. */
class RecordingHandler implements Dispatcher.DispatchHandler {
  readonly lines: string[] = [];
  bytes = 0;
  readonly #isHeld: boolean;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(isHeld = false) {
    this.#isHeld = isHeld;
  }

  get controller(): Dispatcher.DispatchController {
    assert.ok(this.#controller);
    return this.#controller;
  }

  /** Waits until it has been told this. */
  async waitFor(line: string): Promise<void> {
    await until(() => this.lines.includes(line));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isHeld) controller.pause();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.lines.push(`head ${status}`);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length;
  }

  onResponseEnd(): void {
    this.lines.push("end");
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.lines.push(`error ${error?.message}`);
  }
}

function send(hub: Hub, url: string, notes: RecordingHandler, call: CallOptions = {}): RecordingHandler {
  const { origin, pathname } = new URL(url);
  hub.dispatcher(call).dispatch({ origin, path: pathname, method: "GET" }, notes);
  return notes;
}

/** A server whose answers the test gives by hand. */
async function slow(t: TestContext, options: TestHubOptions = {}) {
  const held: ServerResponse[] = [];
  const server = await serve(t, (_, response) => void held.push(response));
  const hub = await hubFor(t, { retry: false, ...options });
  const arrived = (count: number) => until(() => held.length === count);
  return { held, server, hub, arrived };
}

/** A wire without a network, that starts each request at once and then does with it what the test says. */
class FakeWire extends Dispatcher {
  readonly origins: string[] = [];
  readonly #answer: (handler: Dispatcher.DispatchHandler, controller: Dispatcher.DispatchController) => void;

  constructor(answer: (handler: Dispatcher.DispatchHandler, controller: Dispatcher.DispatchController) => void) {
    super();
    this.#answer = answer;
  }

  override dispatch({ origin }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.origins.push(String(origin));
    const controller: Dispatcher.DispatchController = {
      aborted: false,
      paused: false,
      reason: null,
      abort: reason => handler.onResponseError?.(controller, reason),
      pause: () => undefined,
      resume: () => undefined,
    };
    handler.onRequestStart?.(controller, null);
    this.#answer(handler, controller);
    return true;
  }
}

test("what was written counts, although its caller left before there was an answer", async t => {
  const { server, hub, arrived } = await slow(t, { time: new FakeTime(), cache: false, limits: ONE_A_SECOND });
  const controller = new AbortController();
  const left = hub.request(server.origin, { signal: controller.signal });
  await arrived(1);
  controller.abort(new Error("enough"));
  await assert.rejects(left, /enough/);
  await until(() => hub.snapshot().inFlight === 0);
  await assert.rejects(hub.request(server.origin), RateLimitExceeded);
});

test("a request over a new connection that is not answered counts from a tenth of a second after it was sent", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await slow(t, { time, cache: false, limits: QUEUED });
  const first = hub.request(server.origin);
  await arrived(1);
  const second = hub.request(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(1099);
  assert.equal(hub.snapshot().waiting, 1);
  await time.advance(1);
  assert.equal(hub.snapshot().waiting, 0);
  await arrived(2);
  for (const response of held) response.end();
  for (const answer of [first, second]) await (await answer).body.text();
});

test("a request over a connection that is there counts from when it was sent", async t => {
  const time = new FakeTime();
  const wire = new FakeWire(handler => handler.onRequestSent?.());
  const hub = await hubFor(t, { time, cache: false, dispatcher: wire, limits: QUEUED });
  for (let number = 0; number < 2; number += 1) send(hub, "http://example.org", new RecordingHandler());
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(999);
  assert.equal(wire.origins.length, 1);
  await time.advance(1);
  assert.equal(wire.origins.length, 2);
});

test("an http_request event tells how long the call stood in line, and how long it took in all", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await slow(t, { time, cache: false, limits: QUEUED });
  const events = recordEvents(hub);
  const first = hub.request(server.origin);
  await arrived(1);
  held[0]?.end();
  await (await first).body.text();
  const second = hub.request(server.origin);
  await time.advance(1000);
  await arrived(2);
  await time.advance(250);
  held[1]?.end();
  await (await second).body.text();
  assert.deepEqual(
    only(events, "http_request").map(({ rate_delay_ms, elapsed_ms, error }) => ({ rate_delay_ms, elapsed_ms, error })),
    [
      { rate_delay_ms: 0, elapsed_ms: 0, error: undefined },
      { rate_delay_ms: 1000, elapsed_ms: 1250, error: undefined },
    ],
  );
});

test("a date to come back at is measured by the clock of the server that gave it", async t => {
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

test("a 403 with nothing left of any quota is a throttle, and one with something left says nothing of the host", async t => {
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
  test(`a limit that is announced in ${family} alone is heeded`, async t => {
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

test("a stream whose request was refused is closed", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { time: new FakeTime(), limits: ONE_A_SECOND });
  await (await hub.request(server.origin)).body.text();
  const body = new Readable({ read: () => undefined });
  const notes = new RecordingHandler();
  hub.dispatcher().dispatch({ origin: server.origin, path: "/", method: "POST", body }, notes);
  await until(() => notes.lines.length === 1);
  assert.match(notes.lines.join(), /^error .* is full/);
  assert.ok(body.destroyed);
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

test("a redirect that would send a stream a second time is handed to the caller, one that asks for a GET is followed", async t => {
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

test("a caller that is not ready for data is redirected all the same, and gets none before it is ready", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/old") response.writeHead(302, { location: "/new" }).end("it is over there");
    else response.end("here");
  });
  const hub = await hubFor(t, { cache: false });
  const notes = send(hub, `${server.origin}/old`, new RecordingHandler(true), { maxRedirections: 1 });
  await notes.waitFor("head 200");
  // Whole, from the same server, and asked for later: what was not held back would be here by now.
  await send(hub, server.origin, new RecordingHandler()).waitFor("end");
  assert.equal(notes.bytes, 0);
  notes.controller.resume();
  await notes.waitFor("end");
  assert.equal(notes.bytes, "here".length);
});

test("the page of a redirect is read whole, however long, by a caller who does not follow it", async t => {
  const page = Buffer.alloc(3 * 1_048_576);
  const server = await serve(t, (_, response) => response.writeHead(302, { location: "/other" }).end(page));
  const hub = await hubFor(t, { cache: false });
  const notes = send(hub, server.origin, new RecordingHandler());
  await notes.waitFor("end");
  assert.deepEqual(notes.lines, ["head 302", "end"]);
  assert.equal(notes.bytes, page.length);
});

test("each unread body has its own time: when the first is given up, a later one is not", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("unread"));
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 30_000 });
  const events = recordEvents(hub);
  const first = send(hub, server.origin, new RecordingHandler(true));
  await first.waitFor("head 200");
  await time.advance(10_000);
  const second = send(hub, server.origin, new RecordingHandler(true));
  await second.waitFor("head 200");
  await time.advance(20_000);
  assert.equal(only(events, "body_unread").length, 1);
  assert.deepEqual(second.lines, ["head 200"]);
  await time.advance(9999);
  assert.equal(only(events, "body_unread").length, 1);
  await time.advance(1);
  assert.equal(only(events, "body_unread").length, 2);
});

test("what is aborted as soon as it is dispatched never stands in line", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { cache: false, limits: QUEUED });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin)).text();
  const notes = send(hub, server.origin, new RecordingHandler());
  const enough = new Error("enough");
  notes.controller.abort(enough);
  assert.deepEqual([notes.controller.aborted, notes.controller.reason], [true, enough]);
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(notes.lines, ["error enough"]);
  assert.equal(hub.snapshot().waiting, 0);
  assert.equal(only(events, "ratelimit.acquire").length, 1);
});

test("who waited for somebody else's answer without being ready for it is not ready for his own either", async t => {
  const { held, server, hub, arrived } = await slow(t);
  const first = send(hub, server.origin, new RecordingHandler());
  const second = send(hub, server.origin, new RecordingHandler(true));
  await arrived(1);
  held[0]?.setHeader("cache-control", "no-store").end("not for sharing");
  await first.waitFor("end");
  await arrived(2);
  held[1]?.setHeader("cache-control", "no-store").end("his own");
  await second.waitFor("head 200");
  // Whole, from the same server, and asked for later: what was not held back would be here by now.
  const other = send(hub, `${server.origin}/other`, new RecordingHandler());
  await arrived(3);
  held[2]?.end("other");
  await other.waitFor("end");
  assert.deepEqual({ lines: second.lines, bytes: second.bytes }, { lines: ["head 200"], bytes: 0 });
  second.controller.resume();
  await second.waitFor("end");
  assert.equal(second.bytes, "his own".length);
});

test("the page of a failure that breaks off is the first one's alone, and the others ask for themselves", async t => {
  const { held, server, hub, arrived } = await slow(t);
  const first = send(hub, server.origin, new RecordingHandler());
  const second = send(hub, server.origin, new RecordingHandler());
  await arrived(1);
  held[0]?.writeHead(500, { "content-length": "100" }).write("we are sor");
  await first.waitFor("head 500");
  held[0]?.destroy();
  await arrived(2);
  held[1]?.end("well again");
  await second.waitFor("end");
  assert.deepEqual(second.lines, ["head 200", "end"]);
  assert.equal(first.lines.length, 2);
  assert.match(first.lines[1] ?? "", /^error /);
});

test("options about redirects and deadlines that make no sense are told, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  for (const maxRedirections of [-1, 1.5, Number.NaN]) {
    await assert.rejects(hub.request(server.origin, { maxRedirections }), /maxRedirections must be a whole number/);
  }
  await assert.rejects(hub.request(server.origin, { deadlineMs: Number.NaN }), /deadlineMs must be a number above 0/);
  assert.equal(server.requests.length, 0);
});

test("what caches on the way said, in however many lines, stands before what ours says", async t => {
  const server = await serve(t, (_, response) =>
    response.setHeader("cache-status", ["one; hit", "two; fwd=uri-miss"]).end(),
  );
  const hub = await hubFor(t);
  const { headers } = await hub.fetch(server.origin);
  assert.equal(headers.get("cache-status"), "one; hit, two; fwd=uri-miss, docstokg; fwd=miss");
});

test("whoever closes or destroys a dispatcher is told that it is done, with a promise or a callback, and the hub goes on", async t => {
  const { held, server, hub, arrived } = await slow(t, { cache: false });
  const notes = send(hub, server.origin, new RecordingHandler());
  await arrived(1);
  for (const end of [
    (dispatcher: Dispatcher) => dispatcher.close(),
    (dispatcher: Dispatcher) => dispatcher.destroy(),
    (dispatcher: Dispatcher) => dispatcher.destroy(new Error("for today")),
  ]) {
    const ended = end(hub.dispatcher());
    assert.ok(ended instanceof Promise);
    await ended;
  }
  await new Promise<void>(resolve => hub.dispatcher().close(resolve));
  await new Promise<void>(resolve => hub.dispatcher().destroy(resolve));
  await new Promise<void>(resolve => hub.dispatcher().destroy(new Error("for today"), resolve));
  held[0]?.end();
  await notes.waitFor("end");
  const other = send(hub, server.origin, new RecordingHandler());
  await arrived(2);
  held[1]?.end();
  await other.waitFor("end");
});

for (const callback of ["onBodySent", "onRequestSent", "onResponseStarted"] as const) {
  test(`a handler that has no other wish than ${callback} is told`, async t => {
    const server = await serve(t, (request, response) => request.resume().on("end", () => response.end()));
    const hub = await hubFor(t);
    let told = 0;
    const notes = Object.assign(new RecordingHandler(), {
      [callback]: () => {
        told += 1;
      },
    });
    hub.dispatcher().dispatch({ origin: server.origin, path: "/", method: "POST", body: "text" }, notes);
    await notes.waitFor("end");
    assert.equal(told, 1);
  });
}

test("a query is put behind the one that the address has", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  for (const path of ["/", "/?a=b"]) {
    for (const query of [{}, { c: "d" }]) await (await hub.request(`${server.origin}${path}`, { query })).body.text();
  }
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/", "/?c=d", "/?a=b", "/?a=b&c=d"],
  );
});

test("an event names what ended a call by its code, its name or its type", async t => {
  const { server, hub, arrived } = await slow(t, { cache: false });
  const events = recordEvents(hub);
  const reasons = [Object.assign(new Error("x"), { code: "E_ENOUGH" }), new TypeError("x"), { why: "x" }, "x", null];
  for (const [index, reason] of reasons.entries()) {
    const { controller } = send(hub, server.origin, new RecordingHandler());
    await arrived(index + 1);
    controller.abort(reason as Error);
  }
  assert.deepEqual(
    only(events, "http_request").map(({ error }) => error),
    ["E_ENOUGH", "TypeError", "Error", "string", "UND_ERR_ABORTED"],
  );
});

test("an artifact that comes as it is gets no field about its encoding", async t => {
  const server = await serve(t, (request, response) =>
    response.writeHead(200, request.url === "/plain" ? {} : { "content-encoding": "identity" }).end("bytes"),
  );
  const hub = await hubFor(t);
  for (const path of ["/plain", "/identity"]) {
    const { headers } = await hub.fetch(`${server.origin}${path}`, { role: "artifact" });
    assert.equal(headers.has("x-content-encoding"), false);
  }
});

test("a retry waits for the longest pause that its host has asked anybody for", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await slow(t, { time, retry: {}, cache: false, random: () => 0 });
  const events = recordEvents(hub);
  const short = hub.request(`${server.origin}/short`, { maxWaitMs: 0 });
  const long = hub.request(`${server.origin}/long`, { method: "POST" });
  await arrived(2);
  const answer = (path: string, seconds: string) =>
    held
      .find(({ req }) => req.url === path)
      ?.writeHead(429, { "retry-after": seconds })
      .end();
  answer("/long", "20");
  await (await long).body.text();
  answer("/short", "1");
  await until(() => only(events, "http_retry").length === 1);
  assert.deepEqual(
    only(events, "http_retry").map(({ delay_ms }) => delay_ms),
    [20_000],
  );
  await time.advance(20_000);
  await arrived(3);
  held[2]?.end();
  assert.equal((await short).statusCode, 200);
});

test("a body that was read after all leaves no timer behind", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("read"));
  const hub = await hubFor(t, { time, cache: false });
  const notes = send(hub, server.origin, new RecordingHandler(true));
  await notes.waitFor("head 200");
  assert.equal(time.armedTimers, 1);
  notes.controller.resume();
  assert.equal(time.armedTimers, 0);
  await notes.waitFor("end");
  assert.equal(time.armedTimers, 0);
});

test("a field with several values is sent with all of them, and one without a value is not sent", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  const headers = { "x-many": ["one", "two"], "x-none": undefined };
  await (await hub.request(server.origin, { headers })).body.text();
  assert.equal(server.requests[0]?.headers["x-many"], "one, two");
  assert.equal(server.requests[0]?.headers["x-none"], undefined);
});

test("a handler finds the fields of an answer in its controller, as they came", async t => {
  const server = await serve(t, (_, response) => response.setHeader("X-Mixed", "Case").end());
  const hub = await hubFor(t, { cache: false });
  let raw: string[] = [];
  const notes = Object.assign(new RecordingHandler(), {
    onResponseStart: ({ rawHeaders }: { readonly rawHeaders?: unknown }) => {
      raw = (rawHeaders as Buffer[]).map(String);
    },
  });
  send(hub, server.origin, notes);
  await notes.waitFor("end");
  assert.equal(raw[raw.indexOf("X-Mixed") + 1], "Case");
});

test("an upgrade hands the connection over, frees the slot and is told with its status", async t => {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    t.after(() => socket.destroy());
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const hub = await hubFor(t, { limits: { global: { max_inflight: 1 } } });
  const events = recordEvents(hub);
  const { socket, headers } = await upgrade(`http://127.0.0.1:${port}`, {
    dispatcher: hub.dispatcher(),
    protocol: "echo",
  });
  t.after(() => socket.destroy());
  assert.equal(headers["upgrade"], "echo");
  socket.write("to and fro");
  const [chunk] = await once(socket, "data");
  assert.equal(String(chunk), "to and fro");
  const { calls, inFlight } = hub.snapshot();
  assert.deepEqual({ calls, inFlight }, { calls: 0, inFlight: 0 });
  assert.deepEqual(
    only(events, "http_request").map(({ status }) => status),
    [101],
  );
});

test("who is next when the first one leaves gets the answer as it comes, and nobody asks again", async t => {
  const { held, server, hub, arrived } = await slow(t);
  const events = recordEvents(hub);
  const first = send(hub, server.origin, new RecordingHandler());
  const second = send(hub, server.origin, new RecordingHandler());
  await arrived(1);
  first.controller.abort(new Error("enough"));
  held[0]?.setHeader("cache-control", "no-store").end("not for sharing");
  await second.waitFor("end");
  assert.equal(second.bytes, "not for sharing".length);
  assert.deepEqual(first.lines, ["error enough"]);
  assert.equal(only(events, "ratelimit.acquire").length, 1);
});

test("who went his own way can still leave, and his request is ended", async t => {
  const { held, server, hub, arrived } = await slow(t);
  const first = send(hub, server.origin, new RecordingHandler());
  const second = send(hub, server.origin, new RecordingHandler());
  await arrived(1);
  held[0]?.setHeader("cache-control", "no-store").end("not for sharing");
  await first.waitFor("end");
  await arrived(2);
  let isClosed = false;
  held[1]?.on("close", () => {
    isClosed = true;
  });
  second.controller.abort(new Error("enough"));
  await until(() => isClosed);
  await until(() => hub.snapshot().inFlight === 0);
  assert.deepEqual(second.lines, ["error enough"]);
});

test("a redirect that repeats what we put into the query is handed on without it", async t => {
  const server = await serve(t, (request, response) =>
    response.writeHead(302, { location: `https://elsewhere.example${request.url}` }).end(),
  );
  const hub = await createHub({
    env: {},
    mailto: "you@example.org",
    policy: { identities: { hosts: { "127.0.0.1": { query: { contact: "{mailto}" } } } } },
  });
  t.after(() => hub.destroy());
  const { headers, body } = await hub.request(`${server.origin}/page?a=b`);
  await body.dump();
  assert.equal(server.requests[0]?.url, "/page?a=b&contact=you%40example.org");
  assert.equal(headers["location"], "https://elsewhere.example/page?a=b");
});

test("trouble with the cache that nobody listens for is a warning of the process", async t => {
  const warnings: string[] = [];
  const listener = ({ name, message }: Error) => {
    if (name === "DocstokgWarning") warnings.push(message);
  };
  process.on("warning", listener);
  t.after(() => process.off("warning", listener));
  const file = join(import.meta.filename, "not-a-folder.db");
  const hub = await hubFor(t, { cache: `sqlite:${file}` });
  await until(() => warnings.length > 0);
  await hub.close();
  assert.equal(warnings.length, 1);
  assert.match(warnings.join(), /not-a-folder\.db/);
});

for (const callback of ["onRequestStart", "onResponseStart", "onResponseData", "onResponseEnd"] as const) {
  test(`a handler that throws in ${callback} has failed its own request, and nothing is left of it`, async t => {
    const server = await serve(t, (_, response) => response.end("text"));
    const hub = await hubFor(t, { cache: false });
    const notes = Object.assign(new RecordingHandler(), {
      [callback]: () => {
        throw new Error("not my day");
      },
    });
    send(hub, server.origin, notes);
    await notes.waitFor("error not my day");
    await until(() => hub.snapshot().inFlight === 0);
    assert.equal(hub.snapshot().calls, 0);
    assert.equal(notes.lines.filter(line => line.startsWith("error")).length, 1);
  });
}

test("a retry that we refuse ourselves is not tried again for what the attempt before it came to", async t => {
  const time = new FakeTime();
  // Its page breaks off, so that there is no answer to fall back on.
  const server = await serve(t, (_, response) => {
    response.writeHead(503).write("we are sor", () => response.destroy());
  });
  const hub = await hubFor(t, { time, random: () => 0, limits: ONE_A_SECOND });
  const events = recordEvents(hub);
  const refused = assert.rejects(hub.request(server.origin, { maxWaitMs: 0 }), RateLimitExceeded);
  await until(() => only(events, "http_retry").length === 1 && hub.snapshot().inFlight === 0);
  await time.advance(1);
  await refused;
  assert.equal(only(events, "http_retry").length, 1);
  assert.equal(time.armedTimers, 0);
});

test("who leaves while somebody else's answer is under way takes it from nobody", async t => {
  const { held, server, hub, arrived } = await slow(t);
  const first = send(hub, server.origin, new RecordingHandler());
  const second = send(hub, server.origin, new RecordingHandler());
  await arrived(1);
  second.controller.abort(new Error("enough"));
  held[0]?.end("whole");
  await first.waitFor("end");
  assert.equal(first.bytes, "whole".length);
  assert.deepEqual(second.lines, ["error enough"]);
  assert.equal(server.requests.length, 1);
});

for (const [how, status] of [
  ["confirmed", 304],
  ["served for want of a better one", 503],
] as const) {
  test(`an older answer that is ${how} is so for everybody who waits`, async t => {
    const time = new FakeTime();
    const { held, server, hub, arrived } = await slow(t, { time });
    const before = send(hub, server.origin, new RecordingHandler());
    await arrived(1);
    held[0]?.writeHead(200, { etag: '"one"', "cache-control": "max-age=60, stale-if-error=600" }).end("older");
    await before.waitFor("end");
    await time.advance(60_000);
    const waiting = Array.from({ length: 3 }, () => send(hub, server.origin, new RecordingHandler()));
    await arrived(2);
    held[1]?.writeHead(status).end();
    for (const notes of waiting) {
      await notes.waitFor("end");
      assert.deepEqual({ lines: notes.lines, bytes: notes.bytes }, { lines: ["head 200", "end"], bytes: 5 });
    }
    assert.equal(server.requests.length, 2);
  });
}

test("a way back that is taken twice takes nobody else's", async t => {
  const before = getGlobalDispatcher();
  const hubs = [await hubFor(t), await hubFor(t), await hubFor(t)];
  const [first, second, third] = hubs.map(hub => hub.install());
  for (const uninstall of [first, first, second, third]) uninstall?.();
  assert.equal(getGlobalDispatcher(), before);
});

test("a page that nobody is to see may break off: the retry or the hop that it is about is made, once", async t => {
  const server = await serve(t, (request, response, number) => {
    if (request.url === "/there" && number === 4) {
      response.end("there");
      return;
    }
    const isRedirect = request.url === "/old";
    response
      .writeHead(isRedirect ? 302 : 503, isRedirect ? { location: "/there" } : {})
      .write("but befo", () => response.destroy());
  });
  const hub = await hubFor(t, { cache: false, retry: { baseMs: 1 } });
  const events = recordEvents(hub);
  const { statusCode, body } = await hub.request(`${server.origin}/old`, { maxRedirections: 1 });
  assert.deepEqual([statusCode, await body.text()], [200, "there"]);
  assert.equal(server.requests.length, 4);
  assert.equal(only(events, "http_retry").length, 2);
});
