import assert from "node:assert/strict";
import { test } from "node:test";
import type { Dispatcher } from "undici";
import { dispatchActing, dispatchTo, RecordingHandler } from "../../../test/http/handlers.ts";
import { assertNothingLeft, hubFor, only, recordEvents, serve, settles, until } from "../../../test/http/kit.ts";
import { ImmediateWire } from "../../../test/http/wires.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { CallOptions } from "../call-options.ts";

test("redirects and retries work with a dispatcher that answers before dispatch returns", async t => {
  const time = new FakeTime();
  const wire = new ImmediateWire((path, number) => {
    if (path === "/old") return { status: 302, location: "/new", body: "moved" };
    return { status: number === 3 ? 503 : 200, body: "ok" };
  });
  const hub = await hubFor(t, { time, dispatcher: wire, cache: false, random: () => 0 });
  const redirected = dispatchActing(hub, "http://example.org/old", undefined, undefined, 1);
  assert.deepEqual(redirected.lines, ["start"], "no further callback before its dispatch has returned");
  await until(() => redirected.lines.includes("end"));
  const retried = dispatchActing(hub, "http://example.org/failing");
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
    test(`a response that comes before dispatch returns, ${way}, can be aborted at its head and later, ${kept} a cache`, async t => {
      for (const isLater of [false, true]) {
        const time = new FakeTime();
        const wire = new ImmediateWire((path, number) => {
          if (path === "/old") return { status: 302, location: "/new", body: "moved" };
          return path === "/failing" && number === 1 ? { status: 503, body: "later" } : { status: 200 };
        });
        const hub = await hubFor(t, { time, dispatcher: wire, cache, random: () => 0 });
        const enough = (controller: Dispatcher.DispatchController | undefined) =>
          controller?.abort(new Error("enough"));
        const { lines, controller } = dispatchActing(
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

test("every attempt and every redirect hop takes its own grant", async t => {
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

test("a redirect is followed while the caller pauses, and the caller gets no data before it resumes", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/old") response.writeHead(302, { location: "/new" }).end("it is over there");
    else response.end("here");
  });
  const hub = await hubFor(t, { cache: false });
  const handler = dispatchTo(hub, `${server.origin}/old`, new RecordingHandler(true), { maxRedirections: 1 });
  await handler.waitFor("head 200");
  // A later request to the same server has been answered: data that was not held back would have arrived.
  await dispatchTo(hub, server.origin, new RecordingHandler()).waitFor("end");
  assert.equal(handler.bytes, 0);
  handler.controller.resume();
  await handler.waitFor("end");
  assert.equal(handler.bytes, "here".length);
});

test("a withheld body may break off: the retry or the redirect hop is still sent, once", async t => {
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

test("a withheld body that does not end holds its slot for 1 s only, and the retry is sent at its time", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) response.writeHead(429, { "retry-after": "60" }).write("x");
    else response.end("later");
  });
  const hub = await hubFor(t, { time, random: () => 0, cache: false });
  const events = recordEvents(hub);
  const answer = hub.request(server.origin);
  await until(() => only(events, "http_retry").length === 1);
  assert.equal(hub.snapshot().inFlight, 1);
  await time.advance(1000);
  await until(() => hub.snapshot().inFlight === 0);
  await time.advance(59_000);
  assert.equal(await (await answer).body.text(), "later");
  assertNothingLeft(hub, time);
});

/** One request in 5 s, and retries that must not wait for the next one. */
const REFUSED_RETRY = {
  random: () => 0,
  retry: { attempts: 3, baseMs: 1 },
  limits: { defaults: { metadata: { rates: "1/5SECOND", guard_ms: 0, max_delay_ms: 0 } } },
};

test("a withheld response that the caller judged as a failure stays one when its retry is refused", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) =>
    response.setHeader("cache-control", "max-age=600").end(number === 1 ? "error page" : "good"),
  );
  const hub = await hubFor(t, { time, ...REFUSED_RETRY });
  const events = recordEvents(hub);
  const get = async (call: CallOptions) => (await hub.fetch(server.origin, { maxWaitMs: 0, ...call })).text();
  const failed = get({ outcome: () => "failure" });
  await until(() => only(events, "http_retry").length === 1 && hub.snapshot().inFlight === 0);
  await time.advance(10);
  assert.equal(await settles(failed), "error page");
  assert.deepEqual(
    only(events, "http_request").map(({ breaker_recorded }) => breaker_recorded),
    ["failure"],
  );
  assert.equal(hub.snapshot().cache?.entries, 0);
  await time.advance(5000);
  assert.equal(await get({}), "good");
});

test("a withheld failure is shared with all its callers when the retry is refused", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(503).end("down"));
  const hub = await hubFor(t, { time, ...REFUSED_RETRY });
  const events = recordEvents(hub);
  const get = async () => (await hub.fetch(server.origin, { maxWaitMs: 0 })).text();
  const answers = Promise.all([get(), get(), get()]);
  await until(() => only(events, "http_retry").length === 1 && hub.snapshot().inFlight === 0);
  await time.advance(10);
  assert.deepEqual(await settles(answers), ["down", "down", "down"]);
  assert.equal(server.requests.length, 1);
});
