import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, keyOf, limiterOf, metadataLimits, role, roleLimits } from "../../test/limiter/kit.ts";
import type { Grant } from "./grant.ts";
import type { LimiterEvent } from "./limiter-events.ts";

test("a HEAD that is not counted uses no window and waits for no spacing", async () => {
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
  enterNow().release();
  await time.advance(500);
  enterNow({ method: "HEAD" }).release();
  await time.advance(500);
  assert.ok(gate.tryEnter({ host, role }));
  const smooth = gateOf(roleLimits({ rates: "6/s", shape: "smooth", max_concurrent: 2 }));
  smooth.enterNow();
  smooth.enterNow({ method: "HEAD" });
  assert.equal(smooth.refusal({ method: "HEAD" }).constraint.kind, "concurrency");
});

test("a HEAD that is not counted does not delay the next request of a smooth key, and emits rate_head_skipped", async () => {
  const events: LimiterEvent[] = [];
  const { gate, time, enterNow } = gateOf(roleLimits({ rates: "6/s", shape: "smooth" }), event => events.push(event));
  enterNow().release();
  await time.advance(200);
  enterNow({ method: "HEAD" }).release();
  enterNow({ method: "HEAD", stamp: "granted" }).release();
  await time.advance(50);
  assert.ok(gate.tryEnter({ host, role }));
  assert.equal(events.filter(event => event.event_type === "rate_head_skipped").length, 2);
});

test("HEAD uses no unit where count_head is false, and one where it is true", async () => {
  const free = limiterOf(metadataLimits({ rates: "2/s", count_head: false, max_delay_ms: 5000 }));
  for (let call = 0; call < 50; call += 1) free.start({ method: "HEAD" });
  for (let call = 0; call < 3; call += 1) free.start();
  await free.time.advance(1000);
  assert.deepEqual(free.log, [...Array(52).fill(0), 1000]);
  assert.equal(keyOf(free.limiter).headSkipped, 50);
  assert.ok(free.limiter.tryAcquire({ host, method: "head" }));
  const counted = limiterOf(metadataLimits({ rates: "2/s", count_head: true, max_delay_ms: 5000 }));
  for (let call = 0; call < 3; call += 1) counted.start({ method: "HEAD" });
  await counted.time.advance(1000);
  assert.deepEqual(counted.log, [0, 0, 1000]);
});

test("a HEAD that is not counted still needs a slot, and does not queue behind requests that wait for the rate", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "1/10s", max_concurrent: 1, max_delay_ms: 60_000 }));
  const first = (await start()) as Grant;
  start();
  const head = start({ method: "HEAD" });
  await time.advance(100);
  assert.deepEqual(log, [0]);
  first.release();
  assert.equal(((await head) as Grant).waitedMs, 100);
  assert.deepEqual(log, [0, 100]);
});

test("a weight that no window can grant, an invalid weight and an invalid bound are errors of the caller", async () => {
  const { limiter } = limiterOf(metadataLimits({ rates: "8/s+100/min" }));
  await assert.rejects(
    limiter.acquire({ host, weight: 9 }),
    /weight 9 is larger than the rate limit 8\/SECOND of api.example.org/,
  );
  await assert.rejects(limiter.acquire({ host, weight: 0 }), RangeError);
  await assert.rejects(limiter.acquire({ host, weight: 1.5 }), RangeError);
  await assert.rejects(limiter.acquire({ host, maxWaitMs: -1 }), RangeError);
  await assert.rejects(limiter.acquire({ host, maxWaitMs: Number.NaN }), RangeError);
  const notANumber = { host, weight: Number.NaN };
  assert.throws(() => limiter.check(notANumber), /weight must be an integer of at least 1, got NaN/);
  for (const role of ["pdf", "toString", "__proto__"]) {
    const message = `unknown role "${role}"; expected metadata, landing or artifact`;
    assert.throws(() => limiter.tryAcquire({ host, role: role as "metadata" }), { name: "RangeError", message });
  }
  assert.throws(() => limiter.tryAcquire(JSON.parse("{}")), /a host must be a string/);
});
