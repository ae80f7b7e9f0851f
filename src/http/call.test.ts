import assert from "node:assert/strict";
import { Readable, Stream } from "node:stream";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Dispatcher } from "undici";
import { dispatchActing, dispatchRecorded, dispatchTo, RecordingHandler } from "../../test/http/handlers.ts";
import { hubFor, ONE_A_SECOND, only, recordEvents, serve, settles, until } from "../../test/http/kit.ts";
import { LateTimers } from "../../test/http/late-timers.ts";
import { DeadlineExceededError } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";

test("a redirect body that fetch leaves unread does not block the only slot for the next hop", async t => {
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

test("a handler that pauses in onRequestStart gets no data before it resumes", async t => {
  const server = await serve(t, (request, response) => response.end(request.url === "/" ? "held" : "free"));
  const hub = await hubFor(t, { time: new FakeTime(), cache: false });
  const { lines, controller } = dispatchActing(hub, server.origin, "start", own => own.pause());
  await until(() => lines.includes("head 200"));
  // A later request to the same server has been answered: data that was not held back would have arrived.
  assert.equal(await (await hub.request(`${server.origin}/other`)).body.text(), "free");
  assert.deepEqual(lines, ["start", "head 200"]);
  controller()?.resume();
  await until(() => lines.includes("end"));
  assert.deepEqual(lines, ["start", "head 200", "data", "end"]);
});

test("a handler without onRequestStart gets its response", async t => {
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

test("a handler is started once, however often its request is sent, and gets the interim responses of each attempt", async t => {
  const server = await serve(t, (_, response, number) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    response.writeHead(number === 1 ? 503 : 200).end("ok");
  });
  const hub = await hubFor(t, { retry: { baseMs: 1 } });
  const events = recordEvents(hub);
  assert.deepEqual(await dispatchRecorded(hub.dispatcher(), server.origin), [
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

test("the body stream of a refused request is closed", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { time: new FakeTime(), limits: ONE_A_SECOND });
  await (await hub.request(server.origin)).body.text();
  const body = new Readable({ read: () => undefined });
  const handler = new RecordingHandler();
  hub.dispatcher().dispatch({ origin: server.origin, path: "/", method: "POST", body }, handler);
  await until(() => handler.lines.length === 1);
  assert.match(handler.lines.join(), /^error rate limit 1\/SECOND of 127\.0\.0\.1 \(metadata\) reached/);
  assert.ok(body.destroyed);
});

test("the body stream of a request that the hub answers itself is closed", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { time: new FakeTime(), limits: ONE_A_SECOND });
  await (await hub.request(server.origin)).body.text();
  for (const [call, status] of [
    [{ refusals: "respond" }, 429],
    [{ offline: true }, 504],
  ] as const) {
    const body = new Readable({ read: () => undefined });
    const response = await hub.request(server.origin, { method: "POST", body, ...call });
    await response.body.dump();
    assert.equal(response.statusCode, status);
    assert.ok(body.destroyed);
  }
  assert.equal(server.requests.length, 1);
});

test("a caller that does not follow a redirect gets its complete body, however long", async t => {
  const page = Buffer.alloc(3 * 1_048_576);
  const server = await serve(t, (_, response) => response.writeHead(302, { location: "/other" }).end(page));
  const hub = await hubFor(t, { cache: false });
  const handler = dispatchTo(hub, server.origin, new RecordingHandler());
  await handler.waitFor("end");
  assert.deepEqual(handler.lines, ["head 302", "end"]);
  assert.equal(handler.bytes, page.length);
});

test("the controller has the raw headers of the response", async t => {
  const server = await serve(t, (_, response) => response.setHeader("X-Mixed", "Case").end());
  const hub = await hubFor(t, { cache: false });
  let raw: string[] = [];
  const handler = Object.assign(new RecordingHandler(), {
    onResponseStart: ({ rawHeaders }: { readonly rawHeaders?: unknown }) => {
      raw = (rawHeaders as Buffer[]).map(String);
    },
  });
  dispatchTo(hub, server.origin, handler);
  await handler.waitFor("end");
  assert.equal(raw[raw.indexOf("X-Mixed") + 1], "Case");
});

for (const callback of ["onRequestStart", "onResponseStart", "onResponseData", "onResponseEnd"] as const) {
  test(`an error thrown in ${callback} fails only its own request, and nothing is left`, async t => {
    const server = await serve(t, (_, response) => response.end("text"));
    const hub = await hubFor(t, { cache: false });
    const handler = Object.assign(new RecordingHandler(), {
      [callback]: () => {
        throw new Error("not my day");
      },
    });
    dispatchTo(hub, server.origin, handler);
    await handler.waitFor("error not my day");
    await until(() => hub.snapshot().inFlight === 0);
    assert.equal(hub.snapshot().calls, 0);
    assert.equal(handler.lines.filter(line => line.startsWith("error")).length, 1);
  });
}

test("a deadline ends a call in the queue, before the response, and within the body", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) => {
    if (request.url === "/half") response.writeHead(200, { "content-length": "1000" }).write("half of it");
  });
  const hub = await hubFor(t, { time, cache: false, limits: { global: { max_inflight: 2 } } });
  const onTheWire = hub.request(`${server.origin}/silent`, { deadlineMs: 500 });
  await until(() => server.requests.length === 1);
  const { body } = await hub.request(`${server.origin}/half`, { deadlineMs: 500 });
  const inLine = hub.request(`${server.origin}/never`, { deadlineMs: 500 });
  await until(() => hub.snapshot().waiting === 1);
  const failures = Promise.allSettled([onTheWire, body.text(), inLine]);
  await time.advance(500);
  for (const { reason } of (await failures) as PromiseRejectedResult[])
    assert.ok(reason instanceof DeadlineExceededError);
  const [, , { reason }] = (await failures) as [unknown, unknown, PromiseRejectedResult];
  assert.match(reason.message, /500 ms spent in the queue/);
  await until(() => hub.snapshot().inFlight === 0);
  // A request that got its slot last was aborted over a new connection, and counts as being written for 5 s.
  await time.advance(5000);
  const { calls, waiting } = hub.snapshot();
  assert.deepEqual({ calls, waiting, timers: time.armedTimers }, { calls: 0, waiting: 0, timers: 0 });
});

test("a call whose deadline has passed is not sent when its slot comes free before the timer of the deadline fires", async t => {
  const time = new LateTimers();
  const answer = Promise.withResolvers<void>();
  const server = await serve(t, async (_, response) => {
    await answer.promise;
    response.end("ok");
  });
  const hub = await hubFor(t, { time, cache: false, limits: { global: { max_inflight: 1 } } });
  const events = recordEvents(hub);
  const first = hub.request(server.origin);
  await until(() => server.requests.length === 1);
  const second = hub.request(server.origin, { deadlineMs: 500 });
  const failure = assert.rejects(second, {
    name: "DeadlineExceededError",
    message: /^deadline of 500 ms \(deadlineMs\) exceeded for .*: 0 attempts, 500 ms spent in the queue$/,
  });
  await until(() => hub.snapshot().waiting === 1);
  time.lateUs = 500_000;
  answer.resolve();
  await (await first).body.text();
  await failure;
  assert.equal(server.requests.length, 1);
  // Nothing was sent, so its slot and its unit are free again.
  const { keys, inFlight } = hub.snapshot();
  assert.deepEqual([inFlight, keys[0]?.windows[0]?.used], [0, 1]);
  assert.equal(events.filter(({ event_type }) => event_type === "http_attempt").length, 1);
});

test("a call that cannot be sent before its deadline is refused at once, and a call with only a deadline may wait until then", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  await (await hub.request(server.origin)).body.text();
  const willing = hub.request(server.origin, { deadlineMs: 1500 });
  await until(() => hub.snapshot().waiting === 1);
  await assert.rejects(hub.request(server.origin, { deadlineMs: 1500, maxWaitMs: Number.POSITIVE_INFINITY }), {
    name: "RateLimitExceeded",
    retryAfterMs: 2000,
    message: /waits at most 1\.5 s \(the time left of deadlineMs\)$/,
  });
  await time.advance(1000);
  assert.equal((await willing).statusCode, 200);
});

test("a body stream that fails while its request is queued fails only that request", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 10_000 } } },
  });
  await (await hub.request(server.origin)).body.text();
  // Libraries such as form-data have streams of their own, which are not a Readable.
  for (const body of [new Readable({ read: () => undefined }), new Stream()]) {
    const waiting = hub.request(server.origin, { method: "POST", body: body as Readable });
    await until(() => hub.snapshot().waiting === 1);
    body.emit("error", new Error("the disk is gone"));
    await assert.rejects(waiting, /the disk is gone/);
    assert.equal(hub.snapshot().waiting, 0);
  }
  assert.equal(server.requests.length, 1);
});

test("a controller that is kept after the end of its call keeps neither the handler nor the request in memory", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const { controller, handler, headers } = await endedCall(hub.dispatcher(), server.origin);
  collectGarbage();
  assert.equal(controller.aborted, false);
  assert.equal(handler.deref(), undefined);
  assert.equal(headers.deref(), undefined);
});

/** Sends a request and keeps only the controller of its call. */
async function endedCall(dispatcher: Dispatcher, origin: string) {
  const headers = { "x-test": "1" };
  const { promise, resolve, reject } = Promise.withResolvers<Dispatcher.DispatchController>();
  const handler: Dispatcher.DispatchHandler = {
    onResponseEnd: controller => resolve(controller),
    onResponseError: (_, error) => reject(error),
  };
  const kept = { handler: new WeakRef(handler), headers: new WeakRef(headers) };
  dispatcher.dispatch({ origin, path: "/", method: "GET", headers }, handler);
  const controller = await promise;
  // The target of a WeakRef is kept until the end of the turn, and undici keeps a request until its connection is free.
  await new Promise(resolveTurn => setImmediate(() => setImmediate(resolveTurn)));
  return { controller, ...kept };
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
