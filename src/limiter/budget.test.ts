import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { enforcerOf } from "../../sim/servers/enforcer.ts";
import { gateOf, host, keyOf, limiterOf, metadataLimits, roleLimits } from "../../test/limiter/kit.ts";
import { makeWindow } from "../core/limits/window-log.ts";
import { RateLimitExceeded } from "../errors.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import { Budget } from "./budget.ts";
import { chargeOf } from "./charge.ts";
import type { Grant } from "./grant.ts";

function budgetOf(spacingUs: number, ...windows: readonly (readonly [limit: number, spanUs: number])[]): Budget {
  const policy: BudgetPolicy = {
    rates: windows.map(([limit, windowUs]) => ({ limit, windowUs })),
    guardUs: 0,
    spacingUs,
    windows: windows.map(([limit, spanUs]) => makeWindow(limit, spanUs)),
    labels: windows.map(([limit, spanUs]) => `${limit}/${spanUs}us`),
    costs: [],
    maxConcurrent: Number.POSITIVE_INFINITY,
    sharesSlots: false,
  };
  return new Budget("a.example", policy, undefined);
}

test("the constraint is the limit with the latest end: the spacing, a window or a cooldown", () => {
  const budget = budgetOf(1, [5, 1000]);
  budget.log.write(budget.windows, 1, 0);
  assert.equal(budget.constraint(chargeOf(1), 0).kind, "spacing");
  budget.log.write(budget.windows, 4, 0);
  assert.deepEqual(budget.constraint(chargeOf(1), 0), { kind: "window", owner: "a.example", limit: "5/1000us" });
  budget.holdUntilUs = 1000;
  assert.equal(budget.constraint(chargeOf(1), 0).kind, "window");
  budget.holdUntilUs = 1001;
  assert.equal(budget.constraint(chargeOf(1), 0).kind, "cooldown");
});

test("a unit that no window counts any more is not given back, because the log has only units of others", () => {
  const budget = budgetOf(0, [3, 1_000_000]);
  const nowUs = 90_000_000_000;
  budget.log.write(budget.windows, 3, nowUs);
  budget.refund(chargeOf(1), 0, nowUs);
  assert.equal(budget.earliestUs(chargeOf(1), nowUs), nowUs + 1_000_000);
  budget.refund(chargeOf(1), nowUs, nowUs);
  assert.ok(budget.earliestUs(chargeOf(1), nowUs) <= nowUs);
});

test("a request that is granted and not yet written counts as written now", () => {
  const { enterNow, refusal } = gateOf(roleLimits({ rates: "1/s" }));
  enterNow();
  assert.equal(refusal().retryAfterMs, 1000);
});

test("several windows apply at once, and a refusal says how long the wait would be", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "2/SECOND+10/MINUTE", max_delay_ms: 1000 }));
  for (let second = 0; second < 5; second += 1) {
    await time.advance(second === 0 ? 0 : 1000);
    await Promise.all([start(), start()]);
  }
  assert.deepEqual(log, [0, 0, 1000, 1000, 2000, 2000, 3000, 3000, 4000, 4000]);
  const error = await limiter.acquire({ host }).catch(reason => reason);
  assert.ok(error instanceof RateLimitExceeded);
  assert.equal(error.retryAfterMs, 56_000);
  assert.deepEqual(error.constraint, { kind: "window", owner: host, limit: "10/MINUTE" });
  assert.equal(keyOf(limiter).refused, 1);
});

test("the ninth of eight in a second waits the whole second: windows slide, requests are not paced", async () => {
  const { time, start } = limiterOf(metadataLimits({ rates: "8/second", max_delay_ms: 5000 }));
  const grants = Array.from({ length: 9 }, () => start());
  await time.advance(1000);
  const waits = (await Promise.all(grants)).map(grant => (grant as Grant).waitedMs);
  assert.deepEqual(waits, [0, 0, 0, 0, 0, 0, 0, 0, 1000]);
});

test("eight a second and twelve a minute: eight now, four after a second, the thirteenth after a minute", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "8/s+12/min", max_delay_ms: 60_000 }));
  for (let call = 0; call < 13; call += 1) start();
  await time.advance(60_000);
  assert.deepEqual(log, [...Array(8).fill(0), ...Array(4).fill(1000), 60_000]);
  assert.ok(limiter.tryAcquire({ host }));
});

test("a refusal names the window with the latest end", () => {
  const { limiter } = limiterOf(metadataLimits({ rates: "8/s+8/min" }));
  for (let call = 0; call < 8; call += 1) assert.ok(limiter.tryAcquire({ host }));
  const refusal = limiter.check({ host });
  assert.ok(refusal);
  assert.equal(refusal.constraint.limit, "8/MINUTE");
  assert.equal(refusal.retryAfterMs, 60_000);
});

test("the guard widens every window", async () => {
  const { time, start, log } = limiterOf({ defaults: { metadata: { rates: "1/s", max_delay_ms: 5000 } } });
  start();
  start();
  await time.advance(2000);
  assert.deepEqual(log, [0, 1025]);
});

test("a smooth key is spaced evenly and leaves two of its requests unused", async () => {
  const { time, start, log } = limiterOf(metadataLimits({ rates: "6/s", shape: "smooth", max_delay_ms: 5000 }));
  for (let call = 0; call < 5; call += 1) start();
  await time.advance(2000);
  assert.deepEqual(log, [0, 250, 500, 750, 1000]);
});

test("a server that counts with two buckets rejects no request of a smooth key, whatever the weights of the requests", async () => {
  const loads = fc.integer({ min: 6, max: 60 }).chain(limit =>
    fc.record({
      limit: fc.constant(limit),
      weights: fc.array(fc.integer({ min: 1, max: Math.floor(limit / 2) }), { minLength: 2, maxLength: 60 }),
      phaseMs: fc.nat(999),
    }),
  );
  await fc.assert(
    fc.asyncProperty(loads, async ({ limit, weights, phaseMs }) => {
      const server = enforcerOf("two-buckets", { limit, windowMs: 1000 });
      const { time, start, nowMs } = limiterOf(metadataLimits({ rates: `${limit}/s`, shape: "smooth" }));
      const sent = weights.map(async weight => {
        await start({ weight, maxWaitMs: Number.POSITIVE_INFINITY });
        const arrivedUs = (nowMs() + phaseMs) * 1000;
        assert.ok(server.has(weight, arrivedUs), `weight ${weight} at ${nowMs()} ms`);
        server.count(weight, arrivedUs);
      });
      await time.advance(weights.length * 1000);
      await Promise.all(sent);
    }),
    { numRuns: 300 },
  );
});

test("the estimate of a smooth key counts the weights before and after each send", async () => {
  const { limiter, time, start, log } = limiterOf(metadataLimits({ rates: "10/s", shape: "smooth" }));
  const wait = { maxWaitMs: Number.POSITIVE_INFINITY };
  start({ ...wait, weight: 1 });
  start({ ...wait, weight: 2 });
  start({ ...wait, weight: 1 });
  await time.advance(0);
  const checked = limiter.check({ host, weight: 1 });
  start({ ...wait, weight: 1 });
  await time.advance(5000);
  // 10 in a second are 8 sends of one unit, or 3 of two units.
  assert.deepEqual(log, [0, 334, 668, 793]);
  assert.equal(checked?.retryAfterMs, 793);
});
