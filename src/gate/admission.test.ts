import assert from "node:assert/strict";
import { test } from "node:test";
import { limiterOf, metadataLimits } from "../../test/limiter/kit.ts";
import type { Grant } from "../limiter/grant.ts";

test("a request that cannot start within its bound is refused at once and leaves nothing behind", async () => {
  const { limiter, time, start, log, nowMs } = limiterOf(
    metadataLimits({ rates: "1/s", max_delay_ms: 100, max_concurrent: 9 }),
  );
  const grant = (await start()) as Grant;
  await start();
  assert.deepEqual(log, [0, "RateLimitExceeded"]);
  assert.equal(nowMs(), 0);
  grant.release();
  assert.equal(limiter.snapshot().inFlight, 0);
  assert.equal(time.armedTimers, 0);
});

test("the bound is compared with the place in the queue, not with the next free unit", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "2/s", max_delay_ms: 2000 }));
  for (let call = 0; call < 7; call += 1) start();
  await time.advance(0);
  assert.deepEqual(log, [0, 0, "RateLimitExceeded"]);
  await time.advance(3000);
  assert.deepEqual(log, [0, 0, "RateLimitExceeded", 1000, 1000, 2000, 2000]);
});

test("maxWaitMs overrides max_delay_ms: 0 fails fast, Infinity waits", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "1/s", max_delay_ms: 100 }));
  start();
  start({ maxWaitMs: 0 });
  start({ maxWaitMs: Number.POSITIVE_INFINITY });
  start({ maxWaitMs: 1999 });
  await time.advance(2000);
  assert.deepEqual(log, [0, "RateLimitExceeded", "RateLimitExceeded", 1000]);
});

test("a second window that opens late refuses requests behind a long queue", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "8/s+12/min", max_delay_ms: 5000 }));
  for (let call = 0; call < 21; call += 1) start();
  await time.advance(2000);
  assert.deepEqual(log, [...Array(8).fill(0), ...Array(9).fill("RateLimitExceeded"), ...Array(4).fill(1000)]);
});
