import assert from "node:assert/strict";
import { test } from "node:test";
import { burst, gateOf, host, keyOf, limiterOf, metadataLimits } from "../../test/limiter/kit.ts";
import { RateLimitExceeded } from "../errors.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";

/** Limits of one host without a guard. */
function costLimits(metadata: object, total?: object): RatelimitsOptions {
  const limits = { metadata: { rates: "100/s", guard_ms: 0, ...metadata } };
  return { hosts: { [host]: total === undefined ? limits : { ...limits, total: { guard_ms: 0, ...total } } } };
}

test("a call is granted when requests and costs have capacity, and charges both or none", () => {
  const { limiter } = limiterOf(costLimits({ rates: "3/s", costs: { credits: "100/min" } }));
  const call = (credits: number) => limiter.tryAcquire({ host, costs: { credits } });
  assert.ok(call(60));
  assert.equal(call(41), undefined);
  const used = () => keyOf(limiter).windows.map(({ unit, used }) => [unit, used]);
  assert.deepEqual(used(), [
    ["requests", 1],
    ["credits", 60],
  ]);
  assert.ok(call(40));
  assert.deepEqual(limiter.check({ host, costs: { credits: 1 } }), {
    retryAfterMs: 60_000,
    constraint: { kind: "window", owner: host, limit: "credits 100/MINUTE" },
  });
  assert.ok(call(0), "a call without credits only needs the rate");
  assert.equal(call(0), undefined);
});

test("a call that does not name its costs uses those of the policy, or 1", () => {
  const limits = costLimits({ costs: { credits: "100/min", tokens: "5/min" }, call_costs: { credits: 50 } });
  const { limiter } = limiterOf(limits);
  assert.ok(limiter.tryAcquire({ host }));
  assert.ok(limiter.tryAcquire({ host, costs: { tokens: 3 } }));
  assert.deepEqual(
    keyOf(limiter).windows.map(({ rate, used }) => `${rate}: ${used}`),
    ["100/SECOND: 2", "credits 100/MINUTE: 100", "tokens 5/MINUTE: 4"],
  );
});

test("the total of a host counts the costs of all its roles", () => {
  const { limiter } = limiterOf(costLimits({}, { costs: { credits: "10/min" } }));
  assert.ok(limiter.tryAcquire({ host, costs: { credits: 6 } }));
  assert.equal(limiter.tryAcquire({ host, role: "artifact", costs: { credits: 5 } }), undefined);
  assert.ok(limiter.tryAcquire({ host, role: "landing", costs: { credits: 4 } }));
});

test("a learned rate and a refund do not end the counting of costs that only the total limits", async () => {
  const { gate } = gateOf(costLimits({}, { costs: { credits: "10/min" } }));
  const grant = await gate.enter({ host, role: "metadata", costs: { credits: 1 } });
  grant.written();
  grant.settle({ credits: 0 });
  grant.recordResponse({ isThrottled: false, announced: [{ limit: 50, windowUs: 1_000_000, source: "ratelimit" }] });
  grant.release();
  const next = await gate.enter({ host, role: "metadata", costs: { credits: 8 } });
  next.release();
  await assert.rejects(
    async () => gate.enter({ host, role: "metadata", costs: { credits: 3 }, maxWaitMs: 0 }),
    RateLimitExceeded,
  );
});

test("a HEAD that is not counted uses no costs", () => {
  const { limiter } = limiterOf(costLimits({ costs: { credits: "1/min" } }));
  for (let call = 0; call < 3; call += 1)
    assert.ok(limiter.tryAcquire({ host, method: "HEAD", costs: { credits: 1 } }));
  assert.ok(limiter.tryAcquire({ host }));
});

test("waiting calls keep their order, whatever they cost, and start when their costs fit", async () => {
  const { time, start, log } = limiterOf(costLimits({ costs: { credits: "10/s" } }));
  for (const credits of [10, 8, 1, 10]) start({ costs: { credits }, maxWaitMs: Number.POSITIVE_INFINITY });
  await time.advance(5000);
  assert.deepEqual(log, [0, 1000, 1000, 2000]);
});

test("a call whose costs cannot be granted within its bound is refused at once, with the time that is true", async () => {
  const { limiter, time } = limiterOf(costLimits({ costs: { credits: "10/min" }, max_delay_ms: 1000 }));
  limiter.tryAcquire({ host, costs: { credits: 10 } });
  await time.advance(7);
  await assert.rejects(limiter.acquire({ host, costs: { credits: 3 } }), error => {
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.retryAfterMs, 59_993);
    assert.match(error.message, /^rate limit credits 10\/MINUTE of api\.example\.org \(metadata\) reached/);
    return true;
  });
});

test("costs that no window can grant, are no whole numbers or name an unknown unit are errors of the caller", () => {
  const { limiter } = limiterOf(costLimits({ costs: { credits: "10/min" } }));
  const call = (costs: Record<string, number>, weight?: number) => () => limiter.tryAcquire({ host, costs, weight });
  assert.throws(call({ credits: 11 }), /cost credits 11 is larger than the rate limit credits 10\/MINUTE of api\.ex/);
  assert.throws(call({ credits: 1.5 }), /costs\.credits must be an integer of at least 0, got 1\.5/);
  assert.throws(
    call({ credit: 1 }),
    /costs: no limit of api\.example\.org \(metadata\) counts "credit"; did you mean credits\?/,
  );
  assert.throws(call({ requests: 2 }, 3), /weight 3 and costs\.requests 2 differ/);
  assert.ok(limiter.tryAcquire({ host, costs: { requests: 2 } }));
  assert.equal(keyOf(limiter).windows[0]?.used, 2);
  assert.ok(limiter.tryAcquire({ host: "other.example", costs: { credits: 99 } }), "not limited there");
});

test("a refund frees what a request did not use, and wakes the request that waits for it", async () => {
  const { limiter, time, start, log } = limiterOf(costLimits({ costs: { credits: "10/min" } }));
  const grant = limiter.tryAcquire({ host, costs: { credits: 10 } });
  start({ costs: { credits: 4 }, maxWaitMs: Number.POSITIVE_INFINITY });
  await time.advance(100);
  grant?.settle({ credits: 7 });
  await time.advance(100);
  assert.deepEqual(log, [], "3 are free");
  grant?.settle({ credits: 6 });
  await time.advance(0);
  assert.deepEqual(log, [200]);
  grant?.settle({ credits: 0 });
  assert.equal(keyOf(limiter).windows[1]?.used, 4);
});

test("a debt delays later requests, and refuses a waiting one that can no longer start in time", async () => {
  const { limiter, time, events, start, log } = limiterOf(costLimits({ costs: { credits: "10/s" } }));
  const grant = limiter.tryAcquire({ host, costs: { credits: 10 } });
  start({ costs: { credits: 10 }, maxWaitMs: 1200 });
  await time.advance(500);
  assert.deepEqual(log, []);
  grant?.settle({ credits: 25 });
  await time.advance(0);
  assert.deepEqual(log, ["RateLimitExceeded"], "the debt counts from 500 ms to 1500 ms");
  assert.equal(limiter.check({ host, costs: { credits: 1 } })?.retryAfterMs, 1000);
  assert.deepEqual(
    events.filter(({ event_type }) => event_type === "ratelimit.settle"),
    [{ event_type: "ratelimit.settle", key: host, role: "metadata", unit: "credits", charged: 10, used: 25 }],
  );
  assert.throws(() => grant?.settle({ credit: 1 }), /did you mean credits/);
});

test("a request that is not written yet counts with its settled cost", async () => {
  const { gate, time, enterNow, refusal } = gateOf(costLimits({ costs: { credits: "10/s" } }));
  const grant = enterNow({ costs: { credits: 10 } });
  await time.advance(300);
  assert.equal(refusal({ costs: { credits: 1 } }).retryAfterMs, 1000);
  grant.settle({ credits: 8 });
  enterNow({ costs: { credits: 2 } }).release();
  grant.written();
  await time.advance(400);
  assert.equal(refusal({ costs: { credits: 1 } }).retryAfterMs, 600);
  grant.giveBack();
  assert.equal(refusal({ costs: { credits: 1 } }).retryAfterMs, 600, "it was written");
  const unused = gate.tryEnter({ host, role: "metadata", costs: { credits: 0 } });
  unused?.giveBack();
  unused?.settle({ credits: 9 });
  assert.equal(refusal({ costs: { credits: 1 } }).retryAfterMs, 600, "a request that was given back uses nothing");
});

test("costs still count after a reload that adds, removes or moves their limits", async () => {
  const { limiter, time } = limiterOf(costLimits({ costs: { credits: "10/min" } }));
  limiter.tryAcquire({ host, costs: { credits: 7 } });
  await time.advance(10);
  const left = () => [4, 3].map(credits => limiter.check({ host, costs: { credits } }) === undefined);
  limiter.reload(costLimits({ costs: { credits: "10/min" } }, { costs: { credits: "10/min" } }));
  assert.deepEqual(left(), [false, true], "a total was added");
  limiter.reload(costLimits({}, { costs: { credits: "10/min" } }));
  assert.deepEqual(left(), [false, true], "only the total limits them");
  limiter.reload(costLimits({}));
  assert.deepEqual(left(), [true, true], "nothing limits them");
  limiter.reload(costLimits({}, { rates: "50/s" }));
  limiter.reload(costLimits({}, { rates: "50/s", costs: { credits: "10/min" } }));
  assert.deepEqual(left(), [false, true], "the total that was there limits them again");
  const inGroup: RatelimitsOptions = {
    services: {
      all: {
        members: [host],
        metadata: { rates: "100/s", guard_ms: 0 },
        total: { guard_ms: 0, costs: { credits: "10/min" } },
      },
    },
  };
  limiter.reload(inGroup);
  assert.deepEqual(left(), [false, true], "the host is in a service");
  await time.advance(60_000);
  assert.deepEqual(left(), [true, true]);
});

test("a grant survives a reload that adds a cost limit above it", () => {
  const { gate, enterNow, refusal } = gateOf(costLimits({ costs: { credits: "10/min" } }, { rates: "50/s" }));
  const grant = enterNow({ costs: { credits: 7 } });
  const limited = costLimits({ costs: { credits: "100/min" } }, { rates: "50/s", costs: { credits: "10/min" } });
  gate.reload(limitPoliciesFrom(limited, "test"));
  assert.equal(refusal({ costs: { credits: 4 } }).retryAfterMs, 60_000);
  grant.giveBack();
  enterNow({ costs: { credits: 10 } });
});

test("limits on money are exact to the millionth, up to a million in a window", () => {
  const { limiter } = limiterOf(costLimits({ costs: { usd_micros: "1000000000000/DAY" } }));
  assert.ok(limiter.tryAcquire({ host, costs: { usd_micros: 999_999_999_999 } }));
  assert.equal(limiter.tryAcquire({ host, costs: { usd_micros: 2 } }), undefined);
});

test("a removed limit on costs no longer decides which units a request may name", () => {
  const costs = (units: object) => costLimits({ costs: units });
  const { gate, enterNow } = gateOf(costs({ credits: "9/DAY" }));
  enterNow().release();
  gate.reload(limitPoliciesFrom(costs({}), "test"));
  enterNow({ costs: { tokens: 3 } }).release();
  gate.reload(limitPoliciesFrom(costs({ pages: "9/DAY" }), "test"));
  assert.throws(() => enterNow({ costs: { tokens: 3 } }), /did you mean|its limits count pages/);
  enterNow({ costs: { credits: 3 } }).release();
});

test("costs that are no object of amounts are an error of the caller", () => {
  const { limiter } = limiterOf(metadataLimits({ costs: { credits: "9/s" } }));
  for (const [costs, found] of [
    [5, "5"],
    ["credits", '"credits"'],
    [[5], "a list"],
    [new Map([["credits", 5]]), "a Map"],
    [null, "null"],
  ] as const) {
    const message = `costs must be an object such as { credits: 10 }, not ${found}`;
    assert.throws(() => limiter.check({ host, costs: costs as never }), { name: "TypeError", message });
  }
});

test("a limit is kept after responses that named the largest costs there are", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "none", costs: { credits: "3/s" } }));
  for (let call = 0; call < 20; call += 1) {
    limiter.tryAcquire({ host })?.settle({ credits: Number.MAX_SAFE_INTEGER });
    assert.equal(limiter.tryAcquire({ host }), undefined);
    await time.advance(1000);
  }
  assert.equal(burst(limiter, 9), 3);
});
