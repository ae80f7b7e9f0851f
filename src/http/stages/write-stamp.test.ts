import assert from "node:assert/strict";
import { test } from "node:test";
import { errors } from "undici";
import { ReferencedTime } from "../../../test/sharing/referenced-time.ts";
import type { Grant } from "../../limiter/grant.ts";
import { DeferredStamps } from "./deferred-stamps.ts";
import { isConnectionCut, WriteStamp } from "./write-stamp.ts";

/** A stamp whose grant records the calls that it gets. */
function stampFor(): {
  readonly stamp: WriteStamp;
  readonly calls: string[];
  readonly time: ReferencedTime;
} {
  const time = new ReferencedTime();
  const calls: string[] = [];
  const names = ["written", "giveBack", "release", "releaseUnstamped"] as const;
  const grant = Object.fromEntries(names.map(name => [name, () => calls.push(name)])) as unknown as Grant;
  const deferredStamps = new DeferredStamps(time);
  const stamp = new WriteStamp({ time, deferredStamps }, grant);
  return { stamp, calls, time };
}

test("over an open connection a request is written when it has been sent", () => {
  const { stamp, calls } = stampFor();
  stamp.start(false);
  assert.deepEqual(calls, []);
  stamp.sent();
  assert.deepEqual(calls, ["written"]);
  stamp.release(false);
  assert.deepEqual(calls, ["written", "release"]);
});

test("over a new connection a request is written at the first byte of the response, or after 5 s", async () => {
  const answered = stampFor();
  answered.stamp.start(true);
  answered.stamp.sent();
  assert.deepEqual(answered.calls, []);
  answered.stamp.stamp();
  assert.deepEqual(answered.calls, ["written"]);
  assert.equal(answered.time.armedTimers, 0);

  const silent = stampFor();
  silent.stamp.start(true);
  silent.stamp.sent();
  await silent.time.advance(4999);
  assert.deepEqual(silent.calls, []);
  await silent.time.advance(1);
  assert.deepEqual(silent.calls, ["written"]);
});

test("a request that was not started gives its units back", () => {
  const { stamp, calls } = stampFor();
  stamp.release(false);
  assert.deepEqual(calls, ["giveBack"]);
});

test("a request that is dropped right after it was sent over a new connection still counts as being written for 5 s", async () => {
  const { stamp, calls, time } = stampFor();
  stamp.start(true);
  stamp.sent();
  await time.advance(4900);
  stamp.release(false);
  assert.deepEqual(calls, ["releaseUnstamped"]);
  assert.equal(time.referenced.size, 0, "the program may end before");
  await time.advance(99);
  assert.deepEqual(calls, ["releaseUnstamped"]);
  await time.advance(1);
  assert.deepEqual(calls, ["releaseUnstamped", "written"]);
});

test("a request whose new connection is ended by the other side is stamped at that moment", () => {
  const { stamp, calls, time } = stampFor();
  stamp.start(true);
  stamp.sent();
  stamp.release(true);
  assert.deepEqual(calls, ["release"]);
  assert.equal(time.armedTimers, 0);
});

test("a request whose connection ends before its headers left gives its units back", () => {
  const { stamp, calls } = stampFor();
  stamp.release(true);
  assert.deepEqual(calls, ["giveBack"]);
});

test("a reset cuts a connection; an abort and a timeout of this process do not", () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" });
  for (const error of [reset, new errors.SocketError("other side closed"), new errors.HTTPParserError("not HTTP")])
    assert.equal(isConnectionCut(error), true, error.message);
  const aborted = new DOMException("aborted", "AbortError");
  for (const error of [new errors.HeadersTimeoutError(), new errors.RequestAbortedError(), aborted, undefined])
    assert.equal(isConnectionCut(error), false, String(error));
});
