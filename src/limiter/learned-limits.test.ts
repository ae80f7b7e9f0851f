import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseRates } from "../core/limits/rate.ts";
import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import { RateLimitExceeded } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";
import { LearnedLimits } from "./learned-limits.ts";
import { LimiterEmitter } from "./limiter-emitter.ts";
import type { LimiterEvent } from "./limiter-events.ts";
import { RoleBudgets } from "./role-budgets.ts";

const host = "api.example.org";
const role = "metadata";
const forever = Number.POSITIVE_INFINITY;
const hourMs = 3_600_000;

const limitsOf = (options: object, more: RatelimitsOptions = {}): RatelimitsOptions => ({
  defaults: { metadata: { guard_ms: 0, max_delay_ms: 0, ...options } },
  ...more,
});

function gateOf(limits: RatelimitsOptions) {
  const time = new FakeTime();
  const events: LimiterEvent[] = [];
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { listener: event => events.push(event) });
  /** Sends one request and records a response with these announced limits. */
  const exchange = (
    announced: readonly AnnouncedLimit[] = [],
    entry: Partial<EntryRequest> = {},
    isThrottled = false,
  ) => {
    const grant = gate.enter({ host, role, maxWaitMs: 0, ...entry }) as Grant;
    grant.written();
    grant.recordResponse({ isThrottled, announced });
    grant.release();
  };
  const take = (entry: Partial<EntryRequest> = {}) => gate.enter({ host, role, maxWaitMs: 0, ...entry }) as Grant;
  /** How many requests are granted at once, up to twenty. */
  const burst = (entry: Partial<EntryRequest> = {}) => {
    for (let count = 0; count < 20; count += 1) {
      const grant = gate.tryEnter({ host, role, ...entry });
      if (grant === undefined) return count;
      grant.release();
    }
    return 20;
  };
  const refusal = (entry: Partial<EntryRequest> = {}) => {
    const answer = gate.check({ host, role, ...entry });
    assert.ok(answer, "refused");
    return answer;
  };
  const log: (number | string)[] = [];
  /** Waits as long as it takes, and logs the time of the grant in ms, or the error. */
  const pass = (entry: Partial<EntryRequest> = {}) =>
    (async () => gate.enter({ host, role, maxWaitMs: forever, ...entry }))().then(
      grant => {
        log.push(time.monotonicUs() / 1000);
        grant.release();
      },
      (error: Error) => {
        log.push(`${error.name}: ${error.message}`);
      },
    );
  const snapshotOf = (name = host) => {
    const found = gate.keySnapshots().find(each => each.key === name && each.role === role);
    assert.ok(found !== undefined, `${name} has a key`);
    return found;
  };
  const learnedEvents = () =>
    events.flatMap(event =>
      event.event_type === "limit_learned" ? [`${event.what}: ${event.old} -> ${event.new} (${event.source})`] : [],
    );
  return { gate, time, events, exchange, take, burst, refusal, log, pass, snapshotOf, learnedEvents };
}

/** Announced rates: `5/s`, or several joined by `+`. */
function rates(text: string): readonly AnnouncedLimit[] {
  return parseRates(text).map(rate => ({ source: "ratelimit", ...rate }));
}

function concurrency(slots: number): readonly AnnouncedLimit[] {
  return [{ source: "x-rate-limit", concurrency: slots }];
}

describe("an announced rate", () => {
  test("that is tighter than the policy applies from now on, and counts requests sent before", async () => {
    const { time, exchange, burst, refusal } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("4/s"));
    assert.equal(burst(), 3);
    assert.deepEqual(refusal().constraint, { kind: "window", owner: host, limit: "4/SECOND" });
    assert.equal(refusal().retryAfterMs, 1000);
    await time.advance(1000);
    assert.equal(burst(), 4);
  });

  test("that is looser than the policy, or the same, changes nothing", () => {
    const { exchange, burst, learnedEvents } = gateOf(limitsOf({ rates: "4/s" }));
    exchange(rates("4/s"));
    exchange(rates("50/s"));
    assert.equal(burst(), 2);
    assert.deepEqual(learnedEvents(), []);
  });

  test("without a window is ignored", () => {
    const { exchange, burst, learnedEvents } = gateOf(limitsOf({ rates: "4/s" }));
    exchange([{ source: "x-ratelimit", limit: 1, remaining: 1, resetMs: 9000 }]);
    assert.equal(burst(), 3);
    assert.deepEqual(learnedEvents(), []);
  });

  test("with another window length than the policy's applies in addition to it", async () => {
    const { time, exchange, burst, learnedEvents } = gateOf(limitsOf({ rates: "4/s" }));
    exchange(rates("6/min"));
    assert.deepEqual(learnedEvents(), ["rate: none -> 6/MINUTE (ratelimit)"]);
    assert.equal(burst(), 3);
    await time.advance(1000);
    assert.equal(burst(), 2);
    await time.advance(59_000);
    assert.equal(burst(), 4);
  });

  test("that the policy implies is not learned", () => {
    const { exchange, learnedEvents } = gateOf(limitsOf({ rates: "1/3s" }));
    exchange(rates("1/s+20/min"));
    assert.deepEqual(learnedEvents(), []);
    const other = gateOf(limitsOf({ rates: "1/3s" }));
    other.exchange(rates("19/min"));
    assert.deepEqual(other.learnedEvents(), ["rate: none -> 19/MINUTE (ratelimit)"]);
  });

  test("applies where the policy has no rate", () => {
    const { exchange, burst } = gateOf({ hosts: { [host]: { metadata: { rates: "1000000/s" } } } });
    exchange(rates("3/s"));
    assert.equal(burst(), 2);
  });

  test("is not loosened by a larger limit of another endpoint", async () => {
    const { time, exchange, burst, learnedEvents } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("3/s"));
    exchange(rates("8/s"));
    exchange(rates("3/s"));
    await time.advance(1000);
    assert.equal(burst(), 3);
    assert.deepEqual(learnedEvents(), ["rate: 10/SECOND -> 3/SECOND (ratelimit)"]);
  });

  test("can be tightened again", async () => {
    const { time, exchange, burst, learnedEvents } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("4/s"));
    exchange(rates("2/s"));
    await time.advance(1000);
    assert.equal(burst(), 2);
    assert.deepEqual(learnedEvents(), [
      "rate: 10/SECOND -> 4/SECOND (ratelimit)",
      "rate: 4/SECOND -> 2/SECOND (ratelimit)",
    ]);
  });

  test("is one of at most four that a key learns in addition to its policy", () => {
    const { exchange, snapshotOf } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("9/2s+9/3s+9/4s+9/5s+9/6s"));
    assert.deepEqual(
      snapshotOf().windows.map(({ rate }) => rate),
      ["10/SECOND", "9/2SECOND", "9/3SECOND", "9/4SECOND", "9/5SECOND"],
    );
  });

  test("is learned also if another learned rate implies it, because earlier requests kept neither", async () => {
    const { time, take, exchange, burst } = gateOf(limitsOf({ rates: "20/s" }));
    for (let call = 0; call < 9; call += 1) take().release();
    exchange(rates("1/s"));
    await time.advance(1000);
    exchange(rates("11/10s"));
    await time.advance(1000);
    // Eleven were sent within ten seconds, although 1/s alone allows ten.
    assert.equal(burst(), 0);
  });

  test("is learned by the key of the request, not by the budgets above it", () => {
    const limits = limitsOf({ rates: "10/s" }, { hosts: { [host]: { total: { rates: "10/s", guard_ms: 0 } } } });
    const { exchange, burst } = gateOf({
      ...limits,
      defaults: { ...limits.defaults, artifact: { rates: "10/s", guard_ms: 0 } },
    });
    exchange(rates("3/s"));
    assert.equal(burst(), 2);
    assert.equal(burst({ role: "artifact" }), 7);
  });

  test("never reduces the spacing of a smooth key", async () => {
    const { time, exchange, refusal, snapshotOf } = gateOf(limitsOf({ rates: "300/min", shape: "smooth" }));
    exchange(rates("10/s"));
    assert.equal(snapshotOf().windows.length, 2);
    assert.equal(refusal().retryAfterMs, 202);
    await time.advance(202);
    exchange(rates("5/s"));
    assert.equal(refusal().retryAfterMs, 334);
  });

  test("never reduces the spacing of a key that 429s have made smooth", async () => {
    const { gate, time, exchange, refusal } = gateOf(limitsOf({ rates: "300/min", guard_ms: 250 }));
    for (let throttle = 0; throttle < 2; throttle += 1) gate.record(host, role, true);
    exchange();
    assert.equal(refusal().retryAfterMs, 202);
    await time.advance(202);
    exchange(rates("10/s"));
    assert.equal(refusal().retryAfterMs, 202);
  });
});

describe("a used-up quota", () => {
  test("holds the key until its reset, and emits an event", async () => {
    const { time, exchange, burst, refusal, events } = gateOf(limitsOf({ rates: "9/s" }));
    exchange([{ source: "ratelimit", remaining: 0, resetMs: 5000 }]);
    assert.equal(refusal().constraint.kind, "cooldown");
    assert.equal(refusal().retryAfterMs, 5000);
    assert.deepEqual(
      events.filter(({ event_type }) => event_type === "ratelimit.cooldown"),
      [{ event_type: "ratelimit.cooldown", key: host, role, seconds: 5 }],
    );
    await time.advance(5000);
    assert.equal(burst(), 9);
  });

  test("without a reset, or with one in the past, changes nothing", () => {
    const { exchange, burst, events } = gateOf(limitsOf({ rates: "9/s" }));
    exchange([{ source: "x-ratelimit", limit: 3, remaining: 0 }]);
    exchange([{ source: "x-ratelimit", remaining: 0, resetMs: 0 }]);
    exchange([{ source: "x-ratelimit", remaining: 1, resetMs: 9000 }]);
    assert.equal(burst(), 6);
    assert.ok(events.every(({ event_type }) => event_type === "ratelimit.acquire"));
  });

  test("holds until the latest of several resets", () => {
    const { exchange, refusal } = gateOf(limitsOf({ rates: "9/s" }));
    exchange([
      { source: "ratelimit", name: "hour", remaining: 0, resetMs: 9000 },
      { source: "ratelimit", name: "burst", remaining: 0, resetMs: 1000 },
    ]);
    assert.equal(refusal().retryAfterMs, 9000);
  });

  test("grants no request while the same response changes the pace", async () => {
    const { time, take, pass, log } = gateOf(limitsOf({ rates: "1/s" }));
    const grant = take();
    grant.written();
    const announced = [{ source: "ratelimit", remaining: 0, resetMs: 4000 }] as const;
    time.setTimer(900, () => grant.recordResponse({ isThrottled: true, announced }));
    pass();
    // Both timers are late: the response arrives first, when the window has long been free.
    await time.stall(1500);
    await time.advance(9000);
    assert.deepEqual(log, [5500]);
  });
});

describe("an announced concurrency", () => {
  test("below the policy's applies from now on", () => {
    const { exchange, take, refusal, learnedEvents } = gateOf(limitsOf({ rates: "99/s", max_concurrent: 5 }));
    exchange(concurrency(9));
    exchange(concurrency(2));
    exchange(concurrency(4));
    take();
    take();
    assert.deepEqual(refusal().constraint, { kind: "concurrency", owner: host, limit: "max_concurrent 2" });
    assert.deepEqual(learnedEvents(), ["concurrency: max_concurrent 5 -> max_concurrent 2 (x-rate-limit)"]);
  });

  test("applies where the policy has none", () => {
    const { exchange, take, refusal, learnedEvents } = gateOf({ hosts: { [host]: { metadata: { rates: "99/s" } } } });
    exchange(concurrency(1));
    take();
    assert.equal(refusal().constraint.limit, "max_concurrent 1");
    assert.deepEqual(learnedEvents(), ["concurrency: none -> max_concurrent 1 (x-rate-limit)"]);
  });

  test("below the number of requests in flight grants none until that number has fallen", async () => {
    const { time, take, pass, log } = gateOf(limitsOf({ rates: "99/s", max_concurrent: 4 }));
    const grants = [take(), take(), take(), take()];
    pass();
    grants[0]?.recordResponse({ isThrottled: false, announced: concurrency(2) });
    for (const [index, grant] of grants.entries()) {
      await time.advance(100);
      grant.release();
      await time.advance(0);
      assert.deepEqual(log, index < 2 ? [] : [300]);
    }
    assert.equal(log.length, 1);
  });
});

describe("requests that wait when a limit is learned", () => {
  test("stay queued and are granted by the new limit", async () => {
    const { time, take, pass, log } = gateOf(limitsOf({ rates: "3/s" }));
    const grants = [take(), take(), take()];
    for (const grant of grants) grant.release();
    for (let call = 0; call < 4; call += 1) pass();
    await time.advance(500);
    grants[0]?.recordResponse({ isThrottled: false, announced: rates("2/s") });
    await time.advance(5000);
    assert.deepEqual(log, [1000, 1000, 2000, 2000]);
  });

  test("are estimated again for the requests behind them", async () => {
    const { time, exchange, take, pass, log, gate } = gateOf(limitsOf({ rates: "2/s" }));
    const grant = take();
    exchange();
    grant.written();
    for (let call = 0; call < 4; call += 1) pass();
    grant.recordResponse({ isThrottled: false, announced: rates("1/s") });
    grant.release();
    // Four are queued at one a second: the fifth starts at 5 s, and a shorter bound is refused at once.
    assert.throws(
      () => gate.enter({ host, role, maxWaitMs: 4999 }),
      (error: unknown) => error instanceof RateLimitExceeded && error.retryAfterMs === 5000,
    );
    pass({ maxWaitMs: 5000 });
    await time.advance(6000);
    assert.deepEqual(log, [1000, 2000, 3000, 4000, 5000]);
  });

  test("are refused at once if their weight can never be granted, and block no request behind them", async () => {
    const { time, gate, take, pass, log } = gateOf(limitsOf({ rates: "5/s" }));
    const grant = take({ weight: 3 });
    grant.written();
    pass({ weight: 4 });
    pass({ weight: 2 });
    pass({ weight: 3 });
    grant.recordResponse({ isThrottled: false, announced: rates("2/s") });
    grant.release();
    await time.advance(0);
    const refused = (weight: number) =>
      `RangeError: weight ${weight} is larger than the rate limit 2/SECOND of ${host}: no window can grant it`;
    assert.deepEqual(log, [refused(4), refused(3)]);
    assert.throws(() => gate.enter({ host, role, weight: 3 }), RangeError);
    await time.advance(1000);
    assert.deepEqual(log.slice(2), [1000]);
    assert.equal(time.armedTimers, 0);
  });
});

describe("a learned limit", () => {
  test("is marked as learned in snapshots", () => {
    const { exchange, snapshotOf } = gateOf(limitsOf({ rates: "10/s+100/min", max_concurrent: 9 }));
    exchange();
    assert.equal(snapshotOf().maxConcurrent, 9);
    assert.deepEqual(
      snapshotOf().windows.map(({ isLearned }) => isLearned),
      [false, false],
    );
    exchange([...rates("4/s+500/h"), ...concurrency(3)]);
    assert.deepEqual(snapshotOf().windows, [
      { rate: "4/SECOND", unit: "requests", used: 2, limit: 4, isLearned: true },
      { rate: "100/MINUTE", unit: "requests", used: 2, limit: 100, isLearned: false },
      { rate: "500/HOUR", unit: "requests", used: 2, limit: 500, isLearned: true },
    ]);
    assert.equal(snapshotOf().maxConcurrent, 3);
  });

  test("is stretched by the multiplier and widened by the guard", async () => {
    const { gate, time, exchange, refusal } = gateOf(
      limitsOf({ rates: "10/s" }, { aimd: { enabled: true, window_s: 60, decrease_step_pct: 20 } }),
    );
    exchange(rates("1/s"));
    for (let answers = 0; answers < 9; answers += 1) gate.record(host, role, true);
    await time.advance(30_000);
    // Only a throttle that the announced limit no longer explains widens the guard.
    gate.record(host, role, true);
    await time.advance(30_000);
    gate.tick();
    exchange();
    // 1 s at a multiplier of 0.8, and a guard of 25 ms.
    assert.equal(refusal().retryAfterMs, 1275);
    await time.advance(1275);
    exchange(rates("1/2s"));
    assert.equal(refusal().retryAfterMs, 2525);
  });

  test("is kept when the policy is reloaded, and never loosens it", async () => {
    const { gate, time, exchange, burst, snapshotOf } = gateOf(limitsOf({ rates: "10/s", max_concurrent: 9 }));
    exchange([...rates("4/s+30/min"), ...concurrency(3)]);
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "20/s", max_concurrent: 8 }), "test"));
    assert.equal(burst(), 3);
    assert.equal(snapshotOf().maxConcurrent, 3);
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "2/s+20/min", max_concurrent: 2 }), "test"));
    assert.deepEqual(
      snapshotOf().windows.map(({ rate, isLearned }) => `${rate} ${isLearned}`),
      ["2/SECOND false", "20/MINUTE false"],
    );
    assert.equal(snapshotOf().maxConcurrent, 2);
    await time.advance(1000);
    assert.equal(burst(), 2);
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "99/h" }), "test"));
    assert.deepEqual(
      snapshotOf().windows.map(({ rate, isLearned }) => `${rate} ${isLearned}`),
      ["99/HOUR false", "4/SECOND true", "30/MINUTE true"],
    );
  });

  test("still delays waiting requests when the policy is reloaded", async () => {
    const { gate, time, exchange, pass, log } = gateOf(limitsOf({ rates: "5/s+9/min" }));
    exchange(rates("8/min"), { weight: 5 });
    pass({ weight: 5 });
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "99/s" }), "test"));
    await time.advance(60_000);
    assert.deepEqual(log, [60_000]);
  });

  test("is learned also if a new policy implies it, because earlier requests kept only the old one", async () => {
    const { gate, time, exchange, take, burst } = gateOf(limitsOf({ rates: "20/s" }));
    for (let call = 0; call < 9; call += 1) exchange();
    const grant = take();
    grant.written();
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "1/s" }), "test"));
    grant.recordResponse({ isThrottled: false, announced: rates("10/10s") });
    grant.release();
    await time.advance(9999);
    assert.equal(burst(), 0);
    await time.advance(1);
    assert.equal(burst(), 1);
  });
});

describe("forgetting a key", () => {
  const crowd = (gate: Gate, name: string, count = 30) => {
    for (let visit = 0; visit < count; visit += 1)
      (gate.enter({ host: `${name}${visit}.example`, role }) as Grant).giveBack();
  };

  test("does not happen within an hour after a rate was announced", async () => {
    const { gate, time, exchange, burst } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("3/s"));
    await time.advance(hourMs / 2);
    exchange(rates("3/s"));
    await time.advance(hourMs - 1);
    crowd(gate, "h");
    assert.equal(burst(), 3);
  });

  test("does not happen within an hour after a concurrency was announced", async () => {
    const { gate, time, exchange, snapshotOf } = gateOf(limitsOf({ rates: "10/s", max_concurrent: 9 }));
    exchange(concurrency(2));
    await time.advance(hourMs - 1);
    crowd(gate, "h");
    assert.equal(snapshotOf().maxConcurrent, 2);
  });

  test("makes no difference: limits of an idle key lapse after an hour, whether the key is forgotten or not", async () => {
    for (const isCrowded of [false, true]) {
      const { gate, time, exchange, burst, snapshotOf } = gateOf(limitsOf({ rates: "10/s", max_concurrent: 9 }));
      exchange([...rates("3/s+9/min"), ...concurrency(1)]);
      await time.advance(hourMs);
      if (isCrowded) crowd(gate, "h");
      assert.equal(
        [...gate.roleBudgets()].some(({ name }) => name === host),
        !isCrowded,
      );
      assert.equal(burst(), 10);
      assert.equal(snapshotOf().maxConcurrent, 9);
    }
  });

  test("does not happen to a key in use, however old the announcement is", async () => {
    const { time, take, exchange, burst } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("3/s"));
    const grant = take();
    await time.advance(2 * hourMs);
    assert.equal(burst(), 2);
    grant.release();
  });

  test("waits until the learned windows have expired", async () => {
    const { gate, time, exchange, burst } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("3/day"));
    await time.advance(24 * hourMs - 1);
    crowd(gate, "h");
    assert.equal(burst(), 2);
  });

  test("bounds the keys of ten thousand hosts to those of the last hour", async () => {
    const { gate, time, exchange } = gateOf(limitsOf({ rates: "10/s" }));
    for (let each = 0; each < 10_000; each += 1) exchange(rates("3/s"), { host: `h${each}.example` });
    assert.ok([...gate.roleBudgets()].length >= 10_000);
    await time.advance(hourMs);
    crowd(gate, "new", 10_000);
    assert.ok([...gate.roleBudgets()].length < 200, `${[...gate.roleBudgets()].length} keys`);
  });

  test("emits that a learned limit has lapsed with the next request", async () => {
    const { time, exchange, learnedEvents } = gateOf(limitsOf({ rates: "10/s" }));
    exchange([...rates("3/s+9/min"), ...concurrency(1)]);
    await time.advance(hourMs);
    exchange();
    assert.deepEqual(learnedEvents().slice(3), [
      "rate: 3/SECOND -> 10/SECOND (lapsed)",
      "rate: 9/MINUTE -> none (lapsed)",
      "concurrency: max_concurrent 1 -> none (lapsed)",
    ]);
  });

  test("makes the key like a new one, all of whose requests kept the policy", async () => {
    const { gate, time, exchange, learnedEvents } = gateOf(limitsOf({ rates: "10/s" }));
    exchange(rates("3/s"));
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "1/s" }), "test"));
    await time.advance(hourMs);
    exchange(rates("60/min"));
    assert.deepEqual(learnedEvents(), ["rate: 10/SECOND -> 3/SECOND (ratelimit)"]);
  });

  test("does not lose a response that arrives afterwards", async () => {
    const { gate, time, take, burst } = gateOf(limitsOf({ rates: "10/s" }));
    const grant = take();
    grant.release();
    await time.advance(2000);
    crowd(gate, "h");
    assert.ok(![...gate.roleBudgets()].some(({ name }) => name === host));
    grant.recordResponse({ isThrottled: false, announced: rates("3/s") });
    assert.equal(burst(), 3);
  });

  test("by a reload records a late response for the key that serves its host now, if there is one", () => {
    const group = (rate: string): RatelimitsOptions =>
      limitsOf({ rates: "10/s" }, { groups: { pair: { members: [host], metadata: { rates: rate, guard_ms: 0 } } } });
    const { gate, take, burst } = gateOf(limitsOf({ rates: "10/s" }));
    const early = take();
    gate.reload(limitPoliciesFrom(group("9/s"), "test"));
    early.recordResponse({ isThrottled: false, announced: rates("3/s") });
    assert.equal(burst(), 2, "one was sent before");
    const late = take({ host: "other.example" });
    const ofGroup = gate.tryEnter({ host, role });
    assert.equal(ofGroup, undefined);
    gate.reload(limitPoliciesFrom(limitsOf({ rates: "10/s" }), "test"));
    late.recordResponse({ isThrottled: false, announced: rates("2/s") });
    assert.equal(burst({ host: "other.example" }), 1);
    assert.equal(burst(), 7, "the service has sent three");
  });
});

describe("a response", () => {
  test("counts for the pace of its key as record429 does", () => {
    const { exchange, snapshotOf } = gateOf(limitsOf({ rates: "10/s" }));
    exchange();
    assert.equal(snapshotOf().guardMs, 0);
    exchange(undefined, {}, true);
    assert.equal(snapshotOf().guardMs, 25);
  });

  test("that announces nothing keeps no state", () => {
    const { gate, take } = gateOf(limitsOf({ rates: "10/s" }));
    const grant = take();
    grant.recordResponse({ isThrottled: false });
    grant.recordResponse({ isThrottled: false, announced: [] });
    const [only] = [...gate.roleBudgets()];
    assert.deepEqual([only?.pace, only?.learned], [undefined, undefined]);
  });

  test("slows its key down if AIMD is enabled", async () => {
    const { time, exchange, snapshotOf } = gateOf(
      limitsOf({ rates: "99/s" }, { aimd: { enabled: true, window_s: 60, decrease_step_pct: 20 } }),
    );
    for (let call = 0; call < 10; call += 1) {
      exchange([], {}, true);
      // A throttle holds the key for its window.
      await time.advance(1250);
    }
    await time.advance(60_000);
    exchange();
    assert.equal(snapshotOf().multiplier, 0.8);
  });
});

// --- Random announcements on random schedules ----------------------------------------------------------------------

interface Limit {
  readonly limit: number;
  readonly ms: number;
  /** Number of requests granted before the announcement: the later ones must keep the limit. */
  readonly afterGrants: number;
}

interface GrantedSend {
  readonly us: number;
  readonly units: number;
  readonly order: number;
}

/** Law L1, counted independently: the most units in any interval that contains this request, without later grants. */
function mostAround(sent: GrantedSend, all: readonly GrantedSend[], spanUs: number): number {
  const before = all.filter(({ order }) => order <= sent.order);
  let most = 0;
  for (const { us: fromUs } of before) {
    if (sent.us < fromUs || sent.us >= fromUs + spanUs) continue;
    const inside = before.filter(({ us }) => us >= fromUs && us < fromUs + spanUs);
    most = Math.max(
      most,
      inside.reduce((sum, { units }) => sum + units, 0),
    );
  }
  return most;
}

const shape = fc.record({ limit: fc.integer({ min: 1, max: 6 }), ms: fc.constantFrom(10, 40, 60, 100, 200, 300, 700) });
const which = fc.nat({ max: 30 });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("enter" as const), weight: fc.constantFrom(1, 1, 1, 2) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("write" as const, "release" as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("giveBack" as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("announce" as const), which, rate: fc.nat({ max: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("slots" as const), which, slots: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("throttled" as const), which }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("exhausted" as const), which, ms: fc.integer({ min: 1, max: 90 }) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 0, max: 150 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stall" as const), ms: fc.integer({ min: 50, max: 900 }) }) },
);

interface AnnouncedCall {
  readonly units: number;
  grant: Grant | undefined;
  order: number;
  state: "waiting" | "granted" | "written" | "returned" | "impossible";
  isReleased: boolean;
}

test("whatever is announced and when, no learned limit is exceeded, and every request is granted or refused with a reason", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(shape, { minLength: 1, maxLength: 3 }),
      // As many window lengths as a key learns at most.
      fc.array(fc.constantFrom(10, 30, 40, 90, 100, 250, 600), { minLength: 4, maxLength: 4 }),
      fc.array(fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 4 }), {
        minLength: 4,
        maxLength: 4,
      }),
      fc.record({ guardMs: fc.constantFrom(0, 3), cap: fc.constantFrom(2, 5, undefined), isSmooth: fc.boolean() }),
      fc.array(step, { maxLength: 60, size: "max" }),
      async (policy, lengths, numbers, { guardMs, cap, isSmooth }, steps) => {
        const time = new FakeTime();
        const options = {
          rates: policy.map(({ limit, ms }) => `${Math.max(2, limit)}/${ms}ms`),
          guard_ms: guardMs,
          shape: isSmooth ? "smooth" : "burst",
          max_concurrent: cap,
        } as const;
        const limits = limitPoliciesFrom(
          { hosts: { [host]: { metadata: options } }, aimd: { enabled: true, window_s: 1 } },
          "test",
        );
        const gate = new Gate(limits, time);
        const calls: AnnouncedCall[] = [];
        const sent: GrantedSend[] = [];
        const inForce: Limit[] = policy.map(({ limit, ms }) => ({ limit: Math.max(2, limit), ms, afterGrants: 0 }));
        let slots = cap ?? forever;
        let heldUntilUs = 0;
        let grants = 0;
        let announcements = 0;
        const held = () => calls.filter(({ grant, isReleased }) => grant !== undefined && !isReleased);
        const granted = (call: AnnouncedCall, grant: Grant) => {
          grants += 1;
          call.grant = grant;
          call.order = grants;
          call.state = "granted";
          assert.ok(held().length <= slots, "above the announced concurrency");
          assert.ok(time.monotonicUs() >= heldUntilUs, "granted although the quota was used up");
        };
        const failed = (call: AnnouncedCall, error: unknown) => {
          assert.ok(error instanceof RangeError, String(error));
          assert.ok(
            inForce.some(({ limit }) => limit < call.units),
            error.message,
          );
          call.state = "impossible";
        };
        const enter = (weight: number) => {
          const call: AnnouncedCall = {
            units: weight,
            grant: undefined,
            order: 0,
            state: "waiting",
            isReleased: false,
          };
          calls.push(call);
          try {
            const entered = gate.enter({ host, role, weight, maxWaitMs: forever });
            if (entered instanceof Promise)
              entered.then(
                grant => granted(call, grant),
                error => failed(call, error),
              );
            else granted(call, entered);
          } catch (error) {
            failed(call, error);
          }
        };
        const end = (call: AnnouncedCall, how: "write" | "release" | "giveBack") => {
          if (call.state === "granted") {
            if (how === "giveBack") call.state = "returned";
            else {
              call.state = "written";
              sent.push({ us: time.monotonicUs(), units: call.units, order: call.order });
            }
          }
          if (how === "write") return call.grant?.written();
          call.isReleased = true;
          return how === "release" ? call.grant?.release() : call.grant?.giveBack();
        };
        const check = () => {
          const pending = calls.filter(({ state }) => state === "granted");
          const all = [...sent, ...pending.map(({ units, order }) => ({ us: time.monotonicUs(), units, order }))];
          for (const { limit, ms, afterGrants } of inForce) {
            for (const each of all) {
              if (each.order <= afterGrants) continue;
              const most = mostAround(each, all, (ms + guardMs) * 1000);
              assert.ok(most <= limit, `${most} in ${ms} ms where ${limit} were announced`);
            }
          }
        };
        for (const each of steps) {
          const call = "which" in each ? held()[each.which % Math.max(1, held().length)] : undefined;
          if (each.do === "enter") enter(each.weight);
          else if (each.do === "advance") await time.advance(each.ms);
          else if (each.do === "stall") await time.stall(each.ms);
          else if (call?.grant !== undefined) {
            if (each.do === "announce") {
              const list = numbers[each.rate] ?? [];
              const [limit, ms] = [list[announcements++ % list.length] ?? 1, lengths[each.rate] ?? 10];
              inForce.push({ limit, ms, afterGrants: grants });
              call.grant.recordResponse({
                isThrottled: false,
                announced: [{ source: "ratelimit", limit, windowUs: ms * 1000 }],
              });
            } else if (each.do === "slots") {
              slots = Math.min(slots, each.slots);
              call.grant.recordResponse({ isThrottled: false, announced: concurrency(each.slots) });
            } else if (each.do === "exhausted") {
              heldUntilUs = Math.max(heldUntilUs, time.monotonicUs() + each.ms * 1000);
              call.grant.recordResponse({
                isThrottled: false,
                announced: [{ source: "ratelimit", remaining: 0, resetMs: each.ms }],
              });
            } else if (each.do === "throttled") call.grant.recordResponse({ isThrottled: true });
            else end(call, each.do);
          }
          await time.advance(0);
          check();
        }
        for (let rounds = 0; rounds < 300 && gate.waiting + gate.inFlight > 0; rounds += 1) {
          for (const call of held()) end(call, "release");
          await time.advance(time.nextTimerMs ?? 1);
          check();
        }
        assert.equal(gate.waiting + gate.inFlight, 0, "a request waits for ever");
        assert.equal(time.armedTimers, 0);
        for (const { state } of calls) assert.match(state, /written|returned|impossible/);
        for (const each of gate.roleBudgets()) assert.equal(each.log.pending, 0);
      },
    ),
    { numRuns: 3000 },
  );
});

test("while the store is away a process has its share of the learned limits too, whenever they were learned", () => {
  for (const order of ["learned first", "divided first"]) {
    const budgets = new RoleBudgets(
      limitPoliciesFrom(limitsOf({ rates: "20/SECOND" }), "test"),
      new FakeTime(),
      new LimiterEmitter(),
    );
    const budget = budgets.forHost(host, role);
    if (order === "divided first") budgets.share(4);
    const learned = new LearnedLimits(budget.configured);
    const changes = learned.apply(rates("8/SECOND"), true, 0);
    assert.deepEqual(changes, [{ what: "rate", old: "20/SECOND", new: "8/SECOND", source: "ratelimit" }]);
    budget.learn(learned, budgets.aimd);
    if (order === "learned first") budgets.share(4);
    assert.deepEqual([budget.windows[0]?.limit, budget.claimedWindows[0]?.limit], [2, 8]);
    budgets.share(9);
    assert.ok(budget.exceedsOwnShare({ units: 1, costs: undefined }), "8 is less than one unit for each process");
    budgets.share(1);
    assert.deepEqual(budget.policy.labels, ["8/SECOND"]);
    assert.deepEqual(learned.lapseChanges(), [{ what: "rate", old: "8/SECOND", new: "20/SECOND", source: "lapsed" }]);
  }
});

test("a learned limit that replaces two windows of one length lapses in one event", () => {
  const policy = limitPoliciesFrom(limitsOf({ rates: "10/SECOND + 8/SECOND" }), "test").route(host, role).roleBudget;
  const learned = new LearnedLimits(policy);
  learned.apply(rates("5/SECOND"), true, 0);
  assert.deepEqual(learned.lapseChanges(), [{ what: "rate", old: "5/SECOND", new: "8/SECOND", source: "lapsed" }]);
});
