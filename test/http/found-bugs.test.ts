/** What a hunt for bugs in the hub has found, by its numbers, and what the mending must not break. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Agent, Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { outcomeOfError } from "../../src/core/breaker/classify.ts";
import { RateLimitExceeded } from "../../src/errors.ts";
import type { Hub } from "../../src/http/hub.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, only, recordEvents, serve, until } from "./kit.ts";

const tls = join(import.meta.dirname, "..", "fixtures", "tls");
const cert = readFileSync(join(tls, "cert.pem"), "utf8");
const key = readFileSync(join(tls, "key.pem"), "utf8");

/** One request a minute, and a line for those who come too early. */
const ONE_A_MINUTE = { defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 100_000 } } };

function assertNothingLeft(hub: Hub, time?: FakeTime): void {
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual(
    { calls, inFlight, waiting, timers: time?.armedTimers ?? 0 },
    { calls: 0, inFlight: 0, waiting: 0, timers: 0 },
  );
}

/** The same promise, with an error when it is for ever in coming: a test that hangs says nothing. */
async function settles<Result>(promise: Promise<Result>): Promise<Result> {
  let isSettled = false;
  const settled = () => {
    isSettled = true;
  };
  promise.then(settled, settled);
  await until(() => isSettled);
  return promise;
}

/** Answers every request with 200 over HTTP/2, and gives the first session up after its third. */
async function goingAway(t: TestContext) {
  const seen = { port: 0, requests: 0 };
  const server = createSecureServer({ cert, key });
  server.on("session", session => {
    session.on("error", () => undefined);
    t.after(() => session.destroy());
  });
  server.on("stream", stream => {
    seen.requests += 1;
    stream.on("error", () => undefined);
    stream.respond({ ":status": 200 });
    stream.end("ok");
    if (seen.requests !== 3) return;
    stream.session?.goaway(0, stream.id);
    stream.session?.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return Object.assign(seen, { port: (server.address() as AddressInfo).port });
}

/** A TLS port that accepts and is silent, until it is to speak. */
async function silent(t: TestContext) {
  const sockets: Socket[] = [];
  const paths: (string | undefined)[] = [];
  let isSilent = true;
  const secure = createHttpsServer({ cert, key }, (request, response) => {
    paths.push(request.url);
    response.end("ok");
  });
  const server = createNetServer({ pauseOnConnect: true }, socket => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    t.after(() => socket.destroy());
    if (!isSilent) secure.emit("connection", socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const speak = () => {
    isSilent = false;
    for (const socket of sockets) secure.emit("connection", socket);
  };
  return { port: (server.address() as AddressInfo).port, sockets, paths, speak };
}

function exampleAt(port: number) {
  return { tls: { ca: cert }, connectTo: [`example.org:443:127.0.0.1:${port}`] };
}

// 1
test("requests that a closing HTTP/2 session did not process are sent again, each with a grant, and nobody has failed", async t => {
  const time = new FakeTime();
  const server = await goingAway(t);
  const hub = await hubFor(t, {
    time,
    cache: false,
    // It is no failure that would need one.
    retry: false,
    network: exampleAt(server.port),
    // Nothing is left for what is sent again: it waits for the next minute, where a newcomer would be refused.
    limits: { defaults: { metadata: { rates: "21/MINUTE", guard_ms: 0, max_delay_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const ask = async (path: string) => (await hub.request(`https://example.org${path}`)).body.text();
  // The session is there before the others come, so that all of them are under way in it.
  await ask("/");
  const answers = Promise.all(Array.from({ length: 20 }, (_, at) => ask(`/${at}`)));
  await Promise.race([answers, until(() => hub.snapshot().waiting > 0 && hub.snapshot().inFlight === 0)]);
  assert.ok(server.requests < 21);
  await time.advance(60_000);
  assert.deepEqual(await settles(answers), Array(20).fill("ok"));
  assert.equal(server.requests, 21);
  const granted = only(events, "ratelimit.acquire").filter(({ outcome }) => outcome === "granted");
  assert.ok(granted.length > server.requests, "what was sent in vain had its grant too");
  assert.equal(only(events, "breaker_failure").length, 0);
  await until(() => hub.snapshot().inFlight === 0);
  assertNothingLeft(hub, time);
});

// 2
test("a redirect's page that fetch leaves unread does not keep the only slot from the next hop", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/old") response.writeHead(302, { location: "/new" }).end(Buffer.alloc(100_000));
    else response.end("there");
  });
  const hub = await hubFor(t, {
    time: new FakeTime(),
    cache: false,
    limits: {
      global: { max_inflight: 1 },
      defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 100_000 } },
    },
  });
  const answer = await settles(hub.fetch(`${server.origin}/old`));
  assert.equal(await answer.text(), "there");
});

// 3
test("GETs with bodies are neither answered from the cache nor for one another", async t => {
  const server = await serve(t, async (request, response) => {
    const asked = (await request.toArray()).join("");
    response.setHeader("cache-control", "max-age=60").end(`about ${asked}`);
  });
  const hub = await hubFor(t, { time: new FakeTime() });
  const ask = async (body: string | null) => (await hub.request(server.origin, { method: "GET", body })).body.text();
  assert.deepEqual(await Promise.all([ask("one"), ask("two")]), ["about one", "about two"]);
  assert.equal(await ask("three"), "about three");
  assert.equal(await ask("three"), "about three");
  assert.equal(server.requests.length, 4);
  assert.equal(await ask(null), "about ");
});

// 4
test("an answer too long to keep ends when the one who read it has left, and who waited for it asks himself", async t => {
  const responses: ServerResponse[] = [];
  let isClosed = false;
  const server = await serve(t, (_, response, number) => {
    response.setHeader("cache-control", "max-age=60");
    if (number > 1) {
      response.end("mine");
      return;
    }
    responses.push(response);
    response.on("close", () => {
      isClosed = true;
    });
    response.flushHeaders();
  });
  const time = new FakeTime();
  const hub = await hubFor(t, { time });
  const controller = new AbortController();
  const first = await hub.request(server.origin, { signal: controller.signal });
  const other = hub.request(server.origin);
  // The two of them, and what is on its way for both.
  await until(() => hub.snapshot().calls === 3);
  const reading = assert.rejects(first.body.text(), /enough/);
  controller.abort(new Error("enough"));
  await reading;
  assert.equal(isClosed, false, "somebody still waits for it");
  // More than a cache keeps, and no end.
  for (const response of responses) response.write(Buffer.alloc(8_388_608));
  assert.equal(await (await settles(other)).body.text(), "mine");
  await until(() => isClosed);
  assertNothingLeft(hub, time);
});

// 4
test("a refresh in the background that brings an answer without end, and not to be kept, is ended", async t => {
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

// 5
test("who may not wait is refused at once, though somebody more patient waits for the same", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { time, limits: ONE_A_MINUTE });
  await (await hub.request(`${server.origin}/other`)).body.text();
  const patient = hub.request(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await assert.rejects(settles(hub.request(server.origin, { maxWaitMs: 0 })), RateLimitExceeded);
  await time.advance(60_000);
  assert.equal(await (await patient).body.text(), "ok");
  assert.equal(server.requests.length, 2);
});

// 5
test("who may not wait shares what somebody more patient has on the wire already", async t => {
  const responses: ServerResponse[] = [];
  const server = await serve(t, (_, response) => {
    responses.push(response.setHeader("cache-control", "max-age=60"));
  });
  const hub = await hubFor(t, { time: new FakeTime(), limits: ONE_A_MINUTE });
  const patient = hub.request(server.origin);
  await until(() => responses.length === 1);
  const other = hub.request(server.origin, { maxWaitMs: 0 });
  await until(() => hub.snapshot().calls === 3);
  for (const response of responses) response.end("shared");
  for (const answer of [patient, other]) assert.equal(await (await answer).body.text(), "shared");
  assert.equal(server.requests.length, 1);
});

// 6
test("the time that a request spends in line makes its answer no older, be it new or confirmed", async t => {
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
  // Past its freshness, and half a minute before the next may be sent.
  await time.advance(31_000);
  assert.deepEqual(await ageAfter(29_000), { status: 200, age: "0" });
  assert.equal(server.requests.length, 3);
});

// 7
test("an abort while connecting gives slot and grant back at once, and the request is never sent", async t => {
  const time = new FakeTime();
  const server = await silent(t);
  const hub = await hubFor(t, {
    time,
    cache: false,
    network: exampleAt(server.port),
    limits: {
      global: { max_inflight: 1 },
      defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 0 } },
    },
  });
  const controller = new AbortController();
  const aborted = hub.request("https://example.org/aborted", { signal: controller.signal });
  await until(() => server.sockets.length === 1);
  controller.abort(new Error("enough"));
  await assert.rejects(settles(aborted), /enough/);
  assertNothingLeft(hub, time);
  // The one slot, and the one request of this minute.
  const later = hub.request("https://example.org/later");
  await until(() => hub.snapshot().inFlight === 1);
  server.speak();
  assert.equal(await (await settles(later)).body.text(), "ok");
  // Connections are closed when everything handed to them is over, the aborted one too.
  await settles(hub.close());
  assert.deepEqual(server.paths, ["/later"]);
});

// 8
test("destroying a hub does not wait for connections that are being made", async t => {
  const server = await silent(t);
  const hub = await hubFor(t, { network: exampleAt(server.port) });
  const refused = assert.rejects(hub.request("https://example.org/"), /power cut/);
  await until(() => server.sockets.length === 1);
  await settles(hub.destroy(new Error("power cut")));
  await refused;
  assertNothingLeft(hub);
});

// 9
for (const order of ["the first one first", "the last one first"]) {
  test(`two hubs are uninstalled, ${order}, and nothing of them remains`, async t => {
    const older = Symbol.for("undici.globalDispatcher.1");
    const places = () => [getGlobalDispatcher(), Reflect.get(globalThis, older)] as const;
    const [before, beforeOlder] = places();
    t.after(() => {
      setGlobalDispatcher(before);
      Reflect.set(globalThis, older, beforeOlder);
    });
    const server = await serve(t, (_, response) => response.end("ok"));
    const [one, two] = [await hubFor(t, { cache: false }), await hubFor(t, { cache: false })];
    const [toOne, toTwo] = [recordEvents(one), recordEvents(two)];
    const passed = async () => {
      await (await fetch(server.origin)).text();
      return [toOne, toTwo].map(events => only(events, "http_request").length);
    };
    const [leaveOne, leaveTwo] = [one.install(), two.install()];
    assert.deepEqual(await passed(), [0, 1], "the last one has the place");
    const isLastFirst = order === "the last one first";
    const ways = isLastFirst ? [leaveTwo, leaveOne] : [leaveOne, leaveTwo];
    ways[0]?.();
    const after = isLastFirst ? [1, 1] : [0, 2];
    assert.deepEqual(await passed(), after, "the other one has the place");
    ways[1]?.();
    assert.deepEqual(places(), [before, beforeOlder]);
    assert.deepEqual(await passed(), after, "neither of them has it");
  });
}

/** A wire of one connection that notes in whose asynchronous context it was called. */
function watched(t: TestContext, context: AsyncLocalStorage<string>) {
  const seen: (string | undefined)[] = [];
  const agent = new Agent({ connections: 1 });
  t.after(() => agent.destroy());
  const wire = agent.compose(dispatch => (options, handler) => {
    seen.push(context.getStore());
    return dispatch(options, handler);
  });
  return { wire, seen };
}

// 10
test("a retry reaches the wire in its caller's context, not in that of who opened the connection", async t => {
  const server = await serve(t, (_, response, number) => response.writeHead(number === 2 ? 503 : 200).end());
  const context = new AsyncLocalStorage<string>();
  const { wire, seen } = watched(t, context);
  const hub = await hubFor(t, { cache: false, dispatcher: wire, retry: { baseMs: 1 } });
  for (const name of ["who connected", "mine"]) {
    await context.run(name, async () => (await hub.request(server.origin)).body.text());
  }
  assert.deepEqual(seen, ["who connected", "mine", "mine"]);
  assert.equal(server.connections, 1);
});

// 10
test("who waited in vain for somebody else's answer goes his own way in his own context", async t => {
  const responses: ServerResponse[] = [];
  const server = await serve(t, (_, response) => {
    responses.push(response.setHeader("cache-control", "no-store"));
  });
  const context = new AsyncLocalStorage<string>();
  const { wire, seen } = watched(t, context);
  const hub = await hubFor(t, { dispatcher: wire });
  const answers = ["one", "two"].map(name =>
    context.run(name, async () => (await hub.request(server.origin)).body.text()),
  );
  for (const number of [1, 2]) {
    await until(() => responses.length === number);
    responses[number - 1]?.end("ok");
  }
  await Promise.all(answers);
  assert.deepEqual(seen, ["one", "two"]);
});

// 11
test("who wants what is cached and nothing else causes no refresh in the background", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) =>
    response.writeHead(200, { etag: '"one"', "cache-control": "max-age=60, stale-while-revalidate=600" }).end("old"),
  );
  const hub = await hubFor(t, { time });
  await (await hub.fetch(server.origin)).text();
  await time.advance(61_000);
  const answer = await hub.fetch(server.origin, { headers: { "cache-control": "only-if-cached" } });
  assert.equal(await answer.text(), "old");
  // Closing waits for what is under way in the background.
  await hub.close();
  assert.equal(server.requests.length, 1);
});

/** What a handler that was dispatched has been told. */
interface DispatchLog {
  readonly lines: string[];
  readonly controller: () => Dispatcher.DispatchController | undefined;
}

type HandlerCallback = "start" | "head" | "data" | "end" | "error";

/** Dispatches a handler that does something at one moment. */
function told(
  hub: Hub,
  url: string,
  callback?: HandlerCallback,
  act?: (controller: Dispatcher.DispatchController) => void,
  maxRedirections = 0,
): DispatchLog {
  const lines: string[] = [];
  let own: Dispatcher.DispatchController | undefined;
  const note = (now: HandlerCallback, controller: Dispatcher.DispatchController, more = "") => {
    lines.push(`${now}${more}`);
    own = controller;
    if (now === callback) act?.(controller);
  };
  const { origin, pathname } = new URL(url);
  hub.dispatcher({ maxRedirections }).dispatch(
    { origin, path: pathname, method: "GET" },
    {
      onRequestStart: controller => note("start", controller),
      onResponseStart: (controller, status) => note("head", controller, ` ${status}`),
      onResponseData: controller => note("data", controller),
      onResponseEnd: controller => note("end", controller),
      onResponseError: (controller, { message }) => note("error", controller, ` ${message}`),
    },
  );
  return { lines, controller: () => own };
}

// 12
test("a pause after the end of a body watches over nothing", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { time, cache: false });
  const { lines } = told(hub, server.origin, "end", controller => controller.pause());
  await until(() => lines.includes("end"));
  assertNothingLeft(hub, time);
});

// 13
test("a handler that pauses when it is started gets no data before it resumes", async t => {
  const server = await serve(t, (request, response) => response.end(request.url === "/" ? "held" : "free"));
  const hub = await hubFor(t, { time: new FakeTime(), cache: false });
  const { lines, controller } = told(hub, server.origin, "start", own => own.pause());
  await until(() => lines.includes("head 200"));
  // Whole, from the same server, and asked for later: what was not held back would be here by now.
  assert.equal(await (await hub.request(`${server.origin}/other`)).body.text(), "free");
  assert.deepEqual(lines, ["start", "head 200"]);
  controller()?.resume();
  await until(() => lines.includes("end"));
  assert.deepEqual(lines, ["start", "head 200", "data", "end"]);
});

// 13
test("a handler that pauses when it is started and never resumes is given up like any other", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("held"));
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 1000 });
  const events = recordEvents(hub);
  const { lines } = told(hub, server.origin, "start", controller => controller.pause());
  await until(() => lines.includes("head 200"));
  await time.advance(1000);
  assert.equal(only(events, "body_unread").length, 1);
  assert.equal(lines.length, 3);
  assert.match(lines.join(), /^start,head 200,error /);
  assertNothingLeft(hub, time);
});

// 14
test("a 500 is told as a failure although nobody wanted its page", async t => {
  const server = await serve(t, (_, response) => {
    response.writeHead(500).write("we are sor");
  });
  const hub = await hubFor(t, { cache: false, retry: false });
  const events = recordEvents(hub);
  const answer = await hub.fetch(server.origin);
  await answer.body?.cancel();
  await until(() => only(events, "http_request").length === 1);
  assert.deepEqual(
    only(events, "http_request").map(({ status, breaker_recorded }) => ({ status, breaker_recorded })),
    [{ status: 500, breaker_recorded: "failure" }],
  );
});

/** What a wire without a network answers: nothing more than the head where there is no body. */
interface ImmediateResponse {
  readonly status: number;
  readonly location?: string;
  readonly body?: string;
}

/** Answers before `dispatch` returns, as caches and mocks do that are handed in. */
class ImmediateWire extends Dispatcher {
  readonly paths: string[] = [];
  aborted = 0;
  readonly #answer: (path: string, number: number) => ImmediateResponse;

  constructor(answer: (path: string, number: number) => ImmediateResponse) {
    super();
    this.#answer = answer;
  }

  override dispatch({ path }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.paths.push(path);
    const { status, location, body } = this.#answer(path, this.paths.length);
    const controller = new InstantController(reason => {
      this.aborted += 1;
      handler.onResponseError?.(controller, reason);
    });
    handler.onRequestStart?.(controller, null);
    if (!controller.aborted) handler.onResponseStart?.(controller, status, location === undefined ? {} : { location });
    if (controller.aborted || body === undefined) return true;
    handler.onResponseData?.(controller, Buffer.from(body));
    if (!controller.aborted) handler.onResponseEnd?.(controller, {});
    return true;
  }
}

class InstantController implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly #onAbort: (reason: Error) => void;

  constructor(onAbort: (reason: Error) => void) {
    this.#onAbort = onAbort;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#onAbort(reason);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }
}

// 15
test("a wire that answers inside dispatch is followed through redirects and retries", async t => {
  const time = new FakeTime();
  const wire = new ImmediateWire((path, number) => {
    if (path === "/old") return { status: 302, location: "/new", body: "moved" };
    return { status: number === 3 ? 503 : 200, body: "ok" };
  });
  const hub = await hubFor(t, { time, dispatcher: wire, cache: false, random: () => 0 });
  const redirected = told(hub, "http://example.org/old", undefined, undefined, 1);
  assert.deepEqual(redirected.lines, ["start"], "nobody is told more before his own dispatch has returned");
  await until(() => redirected.lines.includes("end"));
  const retried = told(hub, "http://example.org/failing");
  await until(() => time.armedTimers === 1);
  await time.advance(time.nextTimerMs ?? 0);
  await until(() => retried.lines.includes("end"));
  for (const { lines } of [redirected, retried]) assert.deepEqual(lines, ["start", "head 200", "data", "end"]);
  assert.deepEqual(wire.paths, ["/old", "/new", "/failing", "/failing"]);
  assertNothingLeft(hub, time);
});

for (const [way, paths] of [
  ["at once", ["/new"]],
  ["after a redirect", ["/old", "/new"]],
  ["after a retry", ["/failing", "/failing"]],
] as const) {
  for (const cache of ["memory", false] as const) {
    const kept = cache === false ? "without" : "with";
    // 15
    test(`what a wire answers inside dispatch ${way} can be aborted when its head comes, and later, ${kept} a cache`, async t => {
      for (const isLater of [false, true]) {
        const time = new FakeTime();
        const wire = new ImmediateWire((path, number) => {
          if (path === "/old") return { status: 302, location: "/new", body: "moved" };
          return path === "/failing" && number === 1 ? { status: 503, body: "later" } : { status: 200 };
        });
        const hub = await hubFor(t, { time, dispatcher: wire, cache, random: () => 0 });
        const enough = (controller: Dispatcher.DispatchController | undefined) =>
          controller?.abort(new Error("enough"));
        const { lines, controller } = told(
          hub,
          `http://example.org${paths[0]}`,
          "head",
          isLater ? undefined : enough,
          1,
        );
        if (way === "after a retry") {
          await until(() => time.armedTimers === 1);
          await time.advance(time.nextTimerMs ?? 0);
        }
        await until(() => lines.includes("head 200"));
        if (isLater) enough(controller());
        assert.deepEqual(lines, ["start", "head 200", "error enough"]);
        assert.deepEqual(wire.paths, paths);
        assert.equal(wire.aborted, 1);
        assertNothingLeft(hub, time);
      }
    });
  }
}

// 16
test("a header whose value is an object is refused with a TypeError, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  for (const value of [{}, [{}], { toString: () => "text" }]) {
    const headers = { "x-thing": value } as unknown as Record<string, string>;
    await assert.rejects(hub.request(server.origin, { headers }), TypeError);
  }
  assert.equal(server.requests.length, 0);
  assertNothingLeft(hub);
});

// 16
test("a handler that does not care when it is started gets its answer like any other", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  hub.dispatcher().dispatch(
    { origin: server.origin, path: "/", method: "GET" },
    {
      onResponseData: (_controller, chunk) => {
        text += chunk;
      },
      onResponseEnd: () => resolve(text),
      onResponseError: (_controller, error) => reject(error),
    },
  );
  assert.equal(await settles(promise), "ok");
});

test("destroy after close does not wait for a connection that nobody wants any more", async t => {
  const silent = createNetServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const sockets: Socket[] = [];
  silent.on("connection", socket => {
    sockets.push(socket.on("error", () => undefined));
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const hub = await hubFor(t, { network: { connectTimeoutMs: 0 } });
  const controller = new AbortController();
  const call = hub.request(`https://127.0.0.1:${port}/`, { signal: controller.signal });
  await until(() => sockets.length === 1);
  controller.abort();
  await assert.rejects(call);
  const closed = hub.close();
  await hub.destroy();
  for (const socket of sockets) socket.destroy();
  await closed;
});

test("a server that lets an HTTP/2 session go in peace has not failed, even where nothing can be sent again", () => {
  const goaway = (code: number) =>
    Object.assign(new Error(`HTTP/2: "GOAWAY" frame received with code ${code}`), { code: "UND_ERR_INFO" });
  assert.equal(outcomeOfError(goaway(0)).kind, "neutral");
  assert.equal(outcomeOfError(goaway(2)).kind, "failure");
});
