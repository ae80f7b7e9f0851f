import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf } from "../../test/limiter/kit.ts";
import { RateLimiter } from "../gate/rate-limiter.ts";
import { partitionName } from "../policy/partition-name.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Waiter } from "./waiter.ts";

const host = "api.example.org";

function limiterOf(options: RatelimitsOptions) {
  const time = new FakeTime();
  const limiter = new RateLimiter(options, { time });
  const shown = () => {
    const found = limiter.snapshot().keys.find(key => key.key === host && key.role === "metadata");
    assert.ok(found !== undefined);
    return found;
  };
  return { time, limiter, shown };
}

test("a key with capacity has no constraint, and a full one names its window", async () => {
  const limits = { rates: "2/SECOND+3/MINUTE", max_delay_ms: 60_000, guard_ms: 0 };
  const { time, limiter, shown } = limiterOf({ hosts: { [host]: { metadata: limits } } });
  await limiter.acquire({ host });
  assert.deepEqual([shown().nextFreeMs, shown().estimatedWaitMs, shown().constraint], [0, 0, undefined]);
  await limiter.acquire({ host });
  assert.equal(shown().nextFreeMs, 1000);
  assert.deepEqual(shown().constraint, { kind: "window", owner: host, limit: "2/SECOND" });
  await time.advance(1000);
  await limiter.acquire({ host });
  assert.equal(shown().nextFreeMs, 59_000);
  assert.deepEqual(shown().constraint, { kind: "window", owner: host, limit: "3/MINUTE" });
});

test("estimatedWaitMs includes the queue, nextFreeMs does not", async () => {
  const limits = { rates: "1/SECOND", max_delay_ms: 60_000, guard_ms: 0 };
  const { time, limiter, shown } = limiterOf({ hosts: { [host]: { metadata: limits } } });
  const calls = [1, 2, 3].map(() => limiter.acquire({ host }));
  await calls[0];
  assert.deepEqual([shown().waiting, shown().nextFreeMs, shown().estimatedWaitMs], [2, 1000, 3000]);
  await time.advance(2000);
  await Promise.all(calls);
  assert.deepEqual([shown().waiting, shown().nextFreeMs, shown().estimatedWaitMs], [0, 1000, 1000]);
});

test("nextFreeMs and constraint take the total above the key into account", async () => {
  const unlimited = { rates: "100/SECOND", max_delay_ms: 60_000, guard_ms: 0 };
  const total = { rates: "1/MINUTE", guard_ms: 0 };
  const { limiter, shown } = limiterOf({ hosts: { [host]: { metadata: unlimited, landing: unlimited, total } } });
  await limiter.acquire({ host });
  assert.equal(shown().nextFreeMs, 60_000);
  assert.deepEqual(shown().constraint, { kind: "window", owner: host, limit: "1/MINUTE" });
});

test("a missing slot is a constraint although every window has capacity", async () => {
  const limits = { rates: "100/SECOND", max_delay_ms: 0, guard_ms: 0, max_concurrent: 1 };
  const { limiter, shown } = limiterOf({ hosts: { [host]: { metadata: limits } } });
  const grant = await limiter.acquire({ host });
  assert.deepEqual([shown().nextFreeMs, shown().inFlight, shown().maxConcurrent], [0, 1, 1]);
  assert.deepEqual(shown().constraint, { kind: "concurrency", owner: host, limit: "max_concurrent 1" });
  grant.release();
  assert.equal(shown().constraint, undefined);
});

test("the global ceiling is the constraint when it is reached", async () => {
  const { limiter, shown } = limiterOf({ defaults: { metadata: { rates: "9/SECOND" } }, global: { max_inflight: 1 } });
  await limiter.acquire({ host });
  assert.deepEqual(shown().constraint, { kind: "concurrency", owner: "global", limit: "max_inflight 1" });
});

test("the measured pace is that of the shortest window, without its guard", async () => {
  const limits = { rates: "60/MINUTE+4/2SECOND", guard_ms: 1000 };
  const { time, limiter, shown } = limiterOf({ hosts: { [host]: { metadata: limits } } });
  for (let call = 0; call < 3; call += 1) limiter.tryAcquire({ host });
  assert.equal(shown().unitsPerSecond, 1.5);
  await time.advance(1000);
  limiter.tryAcquire({ host });
  assert.equal(shown().unitsPerSecond, 2);
  await time.advance(1000);
  assert.equal(shown().unitsPerSecond, 0.5);
  limiter.reload({ hosts: { [host]: { metadata: { rates: "none" } } } });
  assert.equal(shown().unitsPerSecond, undefined);
});

test("a snapshot estimates the requests that wait below a total once, and shows each key as a refusal does", async () => {
  const tenants = 40;
  const metadata = { rates: "3/SECOND", guard_ms: 0, max_delay_ms: 600_000, per: "partition" } as const;
  const { gate, time } = gateOf({ hosts: { [host]: { metadata, total: { rates: "10/SECOND", guard_ms: 0 } } } });
  const enter = (tenant: number) => gate.enter({ host, role: "metadata", partition: `tenant ${tenant}` });
  const calls: Promise<unknown>[] = [];
  for (let round = 0; round < 2; round += 1)
    for (let tenant = 0; tenant < tenants; tenant += 1) calls.push((async () => (await enter(tenant)).release())());
  await time.advance(500);
  const { latestUs } = Waiter.prototype;
  let looks = 0;
  Waiter.prototype.latestUs = function (this: Waiter, nowUs: number) {
    looks += 1;
    return latestUs.call(this, nowUs);
  };
  const keys = gate.keySnapshots();
  Waiter.prototype.latestUs = latestUs;
  assert.equal(looks, 70, "each request is copied into one estimate");
  assert.equal(keys.length, tenants + 1);
  for (let tenant = 0; tenant < tenants; tenant += 1) {
    const key = partitionName(host, `tenant ${tenant}`);
    const refusal = gate.check({ host, role: "metadata", partition: `tenant ${tenant}` });
    const shown = keys.find(each => each.key === key);
    assert.deepEqual([shown?.estimatedWaitMs, shown?.constraint], [refusal?.retryAfterMs, refusal?.constraint]);
  }
  await time.advance(10_000);
  await Promise.all(calls);
});
