import assert from "node:assert/strict";
import { test } from "node:test";
import { HostBreaker } from "./host-breaker.ts";

const HOUR_US = 3_600_000_000;

test("a host with an open permit is kept for one hour after its last call", () => {
  const host = new HostBreaker("a.example");
  host.permits = 1;
  host.usedUs = HOUR_US;
  assert.equal(host.isEvictable(2 * HOUR_US, 0), false);
  assert.equal(host.isEvictable(2 * HOUR_US + 1, 0), true);
});

test("a host with an open permit whose last call was not timed is kept for one hour after the first check", () => {
  const host = new HostBreaker("a.example");
  host.permits = 1;
  assert.equal(host.isEvictable(3 * HOUR_US, 0), false);
  assert.equal(host.isEvictable(4 * HOUR_US, 0), false);
  host.usedUs = undefined;
  assert.equal(host.isEvictable(4 * HOUR_US + 1, 0), false, "it was called again");
  assert.equal(host.isEvictable(5 * HOUR_US + 2, 0), true);
});

test("a host is never evicted during a cooldown, however long it was not called", () => {
  const host = new HostBreaker("a.example");
  host.cooldowns.set({ untilUs: 5 * HOUR_US, reason: "retry-after", afterPermit: 0 });
  assert.equal(host.isEvictable(5 * HOUR_US - 1, 0), false);
  assert.equal(host.isEvictable(5 * HOUR_US, 0), true);
});

test("two consecutive long Retry-Afters raise the reset timeout, a shorter one resets the count", () => {
  const host = new HostBreaker("a.example");
  assert.deepEqual(
    [101, 100, 101, 102, 102, 103, 104].map(us => host.learnReset(us, 100)),
    [false, false, false, true, false, false, true],
  );
  assert.equal(host.learnedResetUs, 104);
  assert.equal(host.isEvictable(1, 0), false);
  host.reset();
  assert.equal(host.isEvictable(1, 0), true);
});

test("a host is kept while slow calls of its window are counted", () => {
  const host = new HostBreaker("a.example");
  const windowUs = 10_000;
  host.slowCalls.add(500, 2, { slowUs: 1, share: 0.5, minCalls: 5, windowUs });
  assert.equal(host.isEvictable(9999, windowUs), false);
  assert.equal(host.isEvictable(10_000, windowUs), true);
});
