import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimitExceeded } from "../../../src/errors.ts";
import { RateLimiter } from "../../../src/limiter.ts";
import type { RatelimitsOptions } from "../../../src/policy/ratelimit-options.ts";
import type { FakeTime } from "../../../src/testing/fake-time.ts";
import { optionsOf, type PlainBudget } from "./plain-policy.ts";
import { runTrace, type TracedLimiter } from "./run-trace.ts";
import { SendList } from "./send-list.ts";
import { drawTrace } from "./trace-plan.ts";

test("a RateLimiter agrees with a plain list of sends: any window, bounds, order, returns and exact refusals", async () => {
  let compared = 0;
  for (let seed = 1; seed <= 600; seed += 1) {
    const { violations, isCompared } = await runTrace(drawTrace(seed));
    assert.deepEqual(violations, [], `seed ${seed}: npm run oracle -- --seed ${seed} --traces 1`);
    if (isCompared) compared += 1;
  }
  assert.ok(compared > 100, String(compared));
});

test("traces that showed a wrong time or name in a refusal before keep every law", async () => {
  const turns = [331_541, 363_044, 413_417, 1_066_727];
  const drift = [348_038];
  const names = [322_281, 377_886, 392_507, 393_753, 417_379];
  const judgedLate = [900_294, 900_613, 900_625, 901_649, 909_791];
  for (const seed of [...turns, ...drift, ...names, ...judgedLate])
    assert.deepEqual((await runTrace(drawTrace(seed))).violations, [], `seed ${seed}`);
});

/** The first violation within these seeds that matches. */
async function found(pattern: RegExp, make: (limits: RatelimitsOptions, time: FakeTime) => TracedLimiter) {
  for (let seed = 1; seed <= 200; seed += 1) {
    const { violations } = await runTrace(drawTrace(seed), make);
    if (violations.some(text => pattern.test(text))) return true;
  }
  return false;
}

/** A limiter that passes calls on, with other answers. */
function changed(limiter: RateLimiter, acquire: TracedLimiter["acquire"]): TracedLimiter {
  return {
    acquire,
    check: request => limiter.check(request),
    record429: request => limiter.record429(request),
    recordSuccess: request => limiter.recordSuccess(request),
    cooldownFor: request => limiter.cooldownFor(request),
    reload: limits => limiter.reload(limits),
    snapshot: () => limiter.snapshot(),
  };
}

test("a limiter whose windows are shorter than the policy's violates L1", async () => {
  const shorter = (limits: RatelimitsOptions): RatelimitsOptions =>
    JSON.parse(JSON.stringify(limits).replaceAll(/(\d+)ms/g, (_, ms) => `${Math.ceil(Number(ms) / 2)}ms`));
  assert.ok(await found(/^L1: /, (limits, time) => new RateLimiter(shorter(limits), { time })));
});

test("a limiter that forgets what was sent when it is reloaded violates L1", async () => {
  const forgetful = (limits: RatelimitsOptions, time: FakeTime): TracedLimiter => {
    let limiter = new RateLimiter(limits, { time });
    return {
      ...changed(limiter, request => limiter.acquire(request)),
      reload: next => {
        limiter = new RateLimiter(next, { time });
      },
      snapshot: () => limiter.snapshot(),
    };
  };
  assert.ok(await found(/^L1: /, forgetful));
});

test("a limiter that ignores the bound of a call violates L4", async () => {
  const patient = (limits: RatelimitsOptions, time: FakeTime) => {
    const limiter = new RateLimiter(limits, { time });
    return changed(limiter, request => limiter.acquire({ ...request, maxWaitMs: Number.POSITIVE_INFINITY }));
  };
  assert.ok(await found(/^L4: .* was granted after/, patient));
});

test("a limiter that gives a wrong time in its refusals is reported", async () => {
  const wrong = (limits: RatelimitsOptions, time: FakeTime) => {
    const limiter = new RateLimiter(limits, { time });
    return changed(limiter, request =>
      limiter.acquire(request).catch(error => {
        if (!(error instanceof RateLimitExceeded)) throw error;
        throw Object.assign(Object.create(error), { retryAfterMs: error.retryAfterMs + 1 });
      }),
    );
  };
  assert.ok(await found(/^retryAfterMs /, wrong));
});

test("a limiter whose check names another limit than its refusals is reported", async () => {
  const wrong = (limits: RatelimitsOptions, time: FakeTime): TracedLimiter => {
    const limiter = new RateLimiter(limits, { time });
    const check: TracedLimiter["check"] = request => {
      const refusal = limiter.check(request);
      return refusal && { ...refusal, constraint: { ...refusal.constraint, limit: "another limit" } };
    };
    return { ...changed(limiter, request => limiter.acquire(request)), check };
  };
  assert.ok(await found(/^names: /, wrong));
});

test("a limiter that lets short calls overtake violates the order", async () => {
  const unfair = (limits: RatelimitsOptions, time: FakeTime) => {
    const limiter = new RateLimiter(limits, { time });
    return changed(limiter, async request => {
      const isHeavy = (request.weight ?? 1) > 1 && request.maxWaitMs === Number.POSITIVE_INFINITY;
      if (isHeavy) await time.sleep(30);
      return limiter.acquire(request);
    });
  };
  assert.ok(await found(/^FIFO: /, unfair));
});

test("a limiter that keeps the grant of an aborted call is reported with its leftovers", async () => {
  const leaking = (limits: RatelimitsOptions, time: FakeTime) => {
    const limiter = new RateLimiter(limits, { time });
    return changed(limiter, ({ signal, ...request }) => {
      const aborted = new Promise<never>((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
      return Promise.race([limiter.acquire(request), aborted]);
    });
  };
  assert.ok(await found(/^left at the end: /, leaking));
});

test("the list counts every send of a budget in a half-open interval", () => {
  const budget: PlainBudget = { requests: [{ limit: 2, ms: 100 }], credits: [], isSmooth: false };
  const policy = {
    ...drawTrace(1).policy,
    guardMs: 10,
    defaults: { metadata: budget, landing: budget, artifact: budget },
    hosts: {},
    service: undefined,
  };
  const list = new SendList();
  const send = (ms: number) => list.add({ us: ms * 1000, host: "a.example", role: "metadata", units: 1, credits: 0 });
  send(0);
  send(50);
  assert.deepEqual(list.exceeded(policy, send(109)), ["3 units in 2/100ms + 10 ms of a.example metadata"]);
  assert.equal(optionsOf(policy).defaults?.metadata?.guard_ms, 10);
  assert.deepEqual(
    list.exceeded(policy, { us: 160_000, host: "a.example", role: "metadata", units: 1, credits: 0 }),
    [],
  );
});
