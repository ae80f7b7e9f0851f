import assert from "node:assert/strict";
import { test } from "node:test";
import { dispatchActing, dispatchTo, RecordingHandler } from "../../../test/http/handlers.ts";
import {
  assertNothingLeft,
  CHUNK,
  hubFor,
  only,
  recordEvents,
  sendLargeBody,
  serve,
  until,
} from "../../../test/http/kit.ts";
import { BodyUnreadError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { UnreadBodies } from "./unread-bodies.ts";

test("a pause after the end of a body leaves no timer", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t, { time, cache: false });
  const { lines } = dispatchActing(hub, server.origin, "end", controller => controller.pause());
  await until(() => lines.includes("end"));
  assertNothingLeft(hub, time);
});

test("a handler that pauses in onRequestStart and never resumes is aborted after unreadBodyMs", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("held"));
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 1000 });
  const events = recordEvents(hub);
  const { lines } = dispatchActing(hub, server.origin, "start", controller => controller.pause());
  await until(() => lines.includes("head 200"));
  await time.advance(1000);
  assert.equal(only(events, "body_unread").length, 1);
  assert.equal(lines.length, 3);
  assert.match(lines.join(), /^start,head 200,error /);
  assertNothingLeft(hub, time);
});

test("each unread body has its own time limit: when the first is aborted, a later one is not", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("unread"));
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 30_000 });
  const events = recordEvents(hub);
  const first = dispatchTo(hub, server.origin, new RecordingHandler(true));
  await first.waitFor("head 200");
  await time.advance(10_000);
  const second = dispatchTo(hub, server.origin, new RecordingHandler(true));
  await second.waitFor("head 200");
  await time.advance(20_000);
  assert.equal(only(events, "body_unread").length, 1);
  assert.deepEqual(second.lines, ["head 200"]);
  await time.advance(9999);
  assert.equal(only(events, "body_unread").length, 1);
  await time.advance(1);
  assert.equal(only(events, "body_unread").length, 2);
});

test("a body that is read after a pause leaves no timer", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("read"));
  const hub = await hubFor(t, { time, cache: false });
  const handler = dispatchTo(hub, server.origin, new RecordingHandler(true));
  await handler.waitFor("head 200");
  assert.equal(time.armedTimers, 1);
  handler.controller.resume();
  assert.equal(time.armedTimers, 0);
  await handler.waitFor("end");
  assert.equal(time.armedTimers, 0);
});

test("a body that is not read is reported once and aborted, and its slot is free", async t => {
  const time = new FakeTime();
  const server = await serve(t, (request, response) =>
    request.url === "/large" ? sendLargeBody(response) : response.end("ok"),
  );
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 30_000, limits: { global: { max_inflight: 1 } } });
  const events = recordEvents(hub);
  const { body } = await hub.request(`${server.origin}/large`);
  await until(() => time.armedTimers === 1);
  const second = hub.request(`${server.origin}/small`);
  await time.advance(29_999);
  assert.equal(hub.snapshot().inFlight, 1);
  await time.advance(1);
  assert.equal(await (await second).body.text(), "ok");
  assert.equal(only(events, "body_unread").length, 1);
  await assert.rejects(body.text(), BodyUnreadError);
  assert.equal(time.armedTimers, 0);
  assert.equal(only(events, "breaker_failure").length, 0);
});

test("a slow reader is not aborted", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => sendLargeBody(response));
  const hub = await hubFor(t, { time, cache: false, unreadBodyMs: 30_000 });
  const events = recordEvents(hub);
  const { body } = await hub.request(server.origin);
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    await time.advance(1000);
  }
  assert.equal(bytes, 400 * CHUNK.length);
  assert.equal(only(events, "body_unread").length, 0);
});

test("a body is abandoned at its own limit, also after another one that is still being read", async () => {
  const time = new FakeTime();
  const unreadBodies = new UnreadBodies(time, 1000);
  const abandoned: (readonly [name: string, atMs: number])[] = [];
  const abandon = (name: string) => void abandoned.push([name, time.monotonicUs() / 1000]);
  let isRead = true;
  const slow = {
    abandon: () => {
      abandon("slow");
      if (isRead) unreadBodies.paused(slow);
      isRead = false;
    },
  };
  unreadBodies.paused(slow);
  await time.advance(400);
  unreadBodies.paused({ abandon: () => abandon("unread") });
  await time.advance(5000);
  assert.deepEqual(abandoned, [
    ["slow", 1000],
    ["unread", 1400],
    ["slow", 2000],
  ]);
  assert.equal(time.armedTimers, 0);
});
