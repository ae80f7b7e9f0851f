import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, limiterOf, metadataLimits, roleLimits } from "../../test/limiter/kit.ts";

test("two hundred queued requests are granted in order, one window at a time", async () => {
  const { time, pass } = gateOf(roleLimits({ rates: "7/s" }));
  const order: number[] = [];
  for (let call = 0; call < 200; call += 1) pass().then(() => order.push(call));
  await time.advance(30_000);
  assert.deepEqual(
    order,
    Array.from({ length: 200 }, (_, call) => call),
  );
});

test("an aborted request leaves the queue at once, rejects with the signal's reason and delays no other", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "1/s", max_delay_ms: 10_000 }));
  start();
  const abort = new AbortController();
  const aborted = limiter.acquire({ host, signal: abort.signal });
  start();
  await time.advance(500);
  const reason = new Error("no longer needed");
  abort.abort(reason);
  await assert.rejects(aborted, error => error === reason);
  await time.advance(500);
  assert.deepEqual(log, [0, 1000]);
  assert.equal(limiter.snapshot().waiting, 0);
  assert.equal(time.armedTimers, 0);
  await assert.rejects(limiter.acquire({ host, signal: abort.signal }), error => error === reason);
});

test("after aborts a new request is judged by those still queued", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "1/s", max_delay_ms: 2000 }));
  start();
  const abort = new AbortController();
  const waiting = [1, 2].map(() => limiter.acquire({ host, signal: abort.signal }).catch(() => "aborted"));
  await start();
  assert.deepEqual(log, [0, "RateLimitExceeded"]);
  abort.abort();
  assert.deepEqual(await Promise.all(waiting), ["aborted", "aborted"]);
  start();
  start();
  await time.advance(3000);
  assert.deepEqual(log, [0, "RateLimitExceeded", 1000, 2000]);
});

test("a heavy request waits for enough units and is not overtaken by light ones behind it", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "4/s", max_delay_ms: 60_000 }));
  for (let call = 0; call < 2; call += 1) start();
  await time.advance(500);
  start();
  start({ weight: 4 });
  start();
  await time.advance(3000);
  assert.deepEqual(log, [0, 0, 500, 1500, 2500]);
});
