import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, test } from "node:test";
import { parseRates } from "../core/limits/rate.ts";
import { evenSpacingUs } from "../core/limits/spacing.ts";
import { makeWindow, type Window, WindowLog } from "../core/limits/window-log.ts";
import type { Grant } from "../limiter/grant.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";
import { RateLimiter } from "./rate-limiter.ts";

const host = "api.example.org";
const role = "metadata";
const forever = Number.POSITIVE_INFINITY;

function gateOf(limits: RatelimitsOptions, listener?: (event: LimiterEvent) => void) {
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, listener === undefined ? {} : { listener });
  const log: (number | string)[] = [];
  type Entry = Partial<Parameters<Gate["enter"]>[0]>;
  /** Enters, releases at once, and notes when it went, or the error's name. */
  const pass = (entry: Entry = {}) =>
    (async () => gate.enter({ host, role, maxWaitMs: forever, ...entry }))().then(
      grant => {
        grant.release();
        log.push(time.monotonicUs() / 1000);
        return grant;
      },
      error => {
        log.push(error.name);
        return error;
      },
    );
  const hold = (entry: Entry = {}) => {
    const grant = gate.enter({ host, role, maxWaitMs: 0, ...entry });
    assert.ok(!(grant instanceof Promise));
    return grant;
  };
  const refusal = (entry: Entry = {}) => {
    const answer = gate.tryEnter({ host, role, ...entry });
    assert.ok(!answer.isGranted, "refused");
    return answer;
  };
  return { gate, time, log, pass, hold, refusal };
}
const lanes = (options: object, more: object = {}): RatelimitsOptions => ({
  defaults: { metadata: { guard_ms: 0, ...options }, artifact: { guard_ms: 0, ...options } },
  ...more,
});
const total = (options: object, lane: object = { rates: "99/s" }) =>
  lanes(lane, { hosts: { [host]: { total: { guard_ms: 0, ...options } } } });

describe("giving back", () => {
  test("what was not written is returned, and whoever waits for it goes at once", async () => {
    const { time, log, pass, hold } = gateOf(lanes({ rates: "1/s" }));
    const grant = hold();
    pass();
    await time.advance(300);
    grant.giveBack();
    await time.advance(0);
    assert.deepEqual(log, [300]);
  });
  test("what was written is never returned", async () => {
    const { gate, time, hold } = gateOf(lanes({ rates: "1/s" }));
    const grant = hold();
    grant.written();
    grant.giveBack();
    assert.equal(gate.tryEnter({ host, role }).isGranted, false);
    assert.equal([...gate.roleBudgets()][0]?.log.pending, 0);
    await time.advance(1000);
    assert.equal(gate.tryEnter({ host, role }).isGranted, true);
  });
  test("a grant is released once, however often it is said", () => {
    const { gate, hold } = gateOf(lanes({ rates: "9/s", max_concurrent: 1 }));
    const grant = hold();
    grant.release();
    grant.release();
    grant.giveBack();
    assert.equal(gate.inFlight, 0);
    hold();
    assert.equal(gate.tryEnter({ host, role }).isGranted, false);
  });
  test("what is returned to a total lets the other role go", async () => {
    const { time, log, pass, hold } = gateOf(total({ rates: "1/10s" }));
    const grant = hold();
    pass({ role: "artifact" });
    await time.advance(300);
    grant.giveBack();
    await time.advance(0);
    assert.deepEqual(log, [300]);
  });
});

describe("leaving", () => {
  test("when the heavy one in front leaves, the light one behind it goes at once", async () => {
    const { time, log, pass } = gateOf(lanes({ rates: "4/s" }));
    const abort = new AbortController();
    pass({ weight: 2 });
    pass({ weight: 4, signal: abort.signal });
    pass();
    await time.advance(500);
    abort.abort();
    await time.advance(0);
    assert.deepEqual(log, [0, 500, "AbortError"]);
  });
  test("the same under a total, where the light one waits in another lane", async () => {
    const { time, log, pass } = gateOf(total({ rates: "4/s" }));
    const abort = new AbortController();
    pass({ weight: 2 });
    pass({ weight: 4, role: "artifact", signal: abort.signal });
    pass();
    await time.advance(500);
    abort.abort();
    await time.advance(0);
    assert.deepEqual(log, [0, 500, "AbortError"]);
  });
  test("after some left, a newcomer is judged by those who stay, and the key's count is right", async () => {
    const { gate, time, log, pass, refusal } = gateOf(lanes({ rates: "1/s" }));
    const abort = new AbortController();
    pass();
    pass();
    pass({ signal: abort.signal });
    pass();
    await time.advance(500);
    assert.equal(refusal().retryAfterMs, 3500);
    abort.abort();
    const [lane] = gate.roleBudgets();
    assert.ok(lane);
    assert.equal(gate.waitingAt(lane), 2);
    assert.equal(refusal().retryAfterMs, 2500);
    for (let call = 0; call < 3; call += 1) pass();
    assert.equal(refusal().retryAfterMs, 5500);
    await time.advance(1000);
    assert.equal(gate.waitingAt(lane), 4);
    assert.equal(refusal().retryAfterMs, 4500);
    await time.advance(10_000);
    assert.deepEqual(log, [0, "AbortError", 1000, 2000, 3000, 4000, 5000]);
  });
  test("a long-lived signal keeps no listener of a wait that is over, and a later abort changes nothing", async () => {
    const events: LimiterEvent[] = [];
    const { gate, time, log, pass } = gateOf(lanes({ rates: "1/s" }), event => events.push(event));
    const abort = new AbortController();
    pass();
    pass({ signal: abort.signal });
    pass();
    await time.advance(1000);
    assert.equal(getEventListeners(abort.signal, "abort").length, 0);
    abort.abort();
    assert.equal(gate.waiting, 1);
    await time.advance(1000);
    assert.deepEqual(log, [0, 1000, 2000]);
    assert.ok(events.every(event => !("outcome" in event) || event.outcome === "granted"));
  });
  test("two hundred in one line go in order, a window at a time", async () => {
    const { time, pass } = gateOf(lanes({ rates: "7/s" }));
    const order: number[] = [];
    for (let call = 0; call < 200; call += 1) pass().then(() => order.push(call));
    await time.advance(30_000);
    assert.deepEqual(
      order,
      Array.from({ length: 200 }, (_, call) => call),
    );
  });
  test("endless waits arm one timer for their lane and none of their own", async () => {
    const { time, pass } = gateOf(lanes({ rates: "1/s" }));
    for (let call = 0; call < 4; call += 1) pass();
    await time.advance(0);
    assert.equal(time.armedTimers, 1);
  });
});

describe("foretelling", () => {
  test("what is granted and not yet written counts as written now", () => {
    const { hold, refusal } = gateOf(lanes({ rates: "1/s" }));
    hold();
    assert.equal(refusal().retryAfterMs, 1000);
  });
  test("a smooth key foretells its spacing", () => {
    const { hold, pass, refusal } = gateOf(lanes({ rates: "6/s", shape: "smooth" }));
    hold().release();
    assert.equal(refusal().retryAfterMs, 250);
    assert.equal(refusal().constraint.kind, "spacing");
    pass();
    assert.equal(refusal().retryAfterMs, 500);
  });
  test("retryAfterMs is rounded up: whoever sleeps it out finds the window open", () => {
    const { hold, refusal } = gateOf({ defaults: { metadata: { rates: "1/s", guard_ms: 0.4 } } });
    hold().release();
    assert.equal(refusal().retryAfterMs, 1001);
  });
  test("a cooldown moves the whole line", async () => {
    const { gate, time, pass, refusal } = gateOf(lanes({ rates: "1/s" }));
    pass();
    pass();
    await time.advance(0);
    gate.hold(host, role, 10_000);
    assert.equal(refusal().retryAfterMs, 11_000);
  });
  test("whoever waits for a slot is foretold from now, not from the past", async () => {
    const { time, hold, pass, refusal } = gateOf(lanes({ rates: "2/10s", max_concurrent: 1 }));
    hold().written();
    await time.advance(4000);
    pass();
    pass();
    assert.equal(refusal().retryAfterMs, 10_000);
  });
  test("forecasts that time has overtaken are made anew", async () => {
    const { time, hold, pass, refusal } = gateOf(lanes({ rates: "1/s", max_concurrent: 1 }));
    const grant = hold();
    grant.written();
    for (let call = 0; call < 3; call += 1) pass();
    await time.advance(5000);
    grant.release();
    await time.advance(0);
    // One went at 5 s, two wait for 6 s and 7 s.
    assert.equal(refusal().retryAfterMs, 3000);
  });
  test("a total foretells whole windows for those ahead", async () => {
    const { time, hold, pass, refusal } = gateOf(total({ rates: "2/10s" }));
    hold().release();
    await time.advance(4000);
    hold().release();
    pass();
    assert.equal(refusal().retryAfterMs, 10_000);
    pass();
    assert.equal(refusal().retryAfterMs, 16_000);
    pass();
    assert.equal(refusal().retryAfterMs, 20_000);
    pass();
    assert.equal(refusal().retryAfterMs, 26_000);
  });
  test("a total that was never used foretells too", () => {
    const { gate, pass, refusal } = gateOf(total({ rates: "2/10s+2/s" }));
    gate.hold(host, role, 5000);
    for (let call = 0; call < 3; call += 1) pass();
    assert.ok((refusal().retryAfterMs ?? 0) >= 10_000);
  });
  test("another lane's line counts for no more than it holds, at every level", () => {
    const one = gateOf(total({ rates: "1/3s" }));
    one.hold().release();
    one.pass({ role: "artifact" });
    for (let call = 0; call < 4; call += 1) one.pass();
    assert.equal(one.refusal().retryAfterMs, 18_000);
    const two = gateOf(
      lanes(
        { rates: "99/s" },
        {
          hosts: {
            [host]: { total: { rates: "99/s", guard_ms: 0 } },
            "b.example": { total: { rates: "99/s", guard_ms: 0 } },
          },
          groups: { both: { members: [host, "b.example"], total: { rates: "1/3s", guard_ms: 0 } } },
        },
      ),
    );
    two.hold().release();
    two.pass({ host: "b.example" });
    for (let call = 0; call < 4; call += 1) two.pass();
    assert.equal(two.refusal().retryAfterMs, 18_000);
  });
  test("the budget that binds is the one named, be it the narrow or the wide one", () => {
    const lane = gateOf(total({ rates: "99/s" }, { rates: "1/10s" }));
    lane.hold().release();
    assert.equal(lane.refusal().constraint.limit, "1/10SECOND");
    const capped = gateOf(total({ rates: "99/s", max_concurrent: 1 }, { rates: "99/s", max_concurrent: 5 }));
    capped.hold();
    assert.equal(capped.refusal().constraint.limit, "max_concurrent 1");
    const ceiling = gateOf({ ...lanes({ rates: "99/s", max_concurrent: 5 }), global: { max_inflight: 1 } });
    ceiling.hold();
    assert.deepEqual(ceiling.refusal().constraint, { kind: "concurrency", owner: "global", limit: "max_inflight 1" });
  });
});

describe("the bound", () => {
  test("a promise that slips by less than a tenth is kept, by more is refused at the bound", async () => {
    for (const [lateMs, expected] of [
      [50, 1050],
      [100, 1100],
      [101, "RateLimitExceeded"],
    ] as const) {
      const { time, log, pass, hold } = gateOf(lanes({ rates: "1/s" }));
      const grant = hold();
      pass({ maxWaitMs: 1000 });
      await time.advance(lateMs);
      grant.release();
      await time.advance(999 - lateMs);
      assert.deepEqual(log, []);
      await time.advance(1);
      assert.deepEqual(log, typeof expected === "string" ? [expected] : []);
      await time.advance(1000);
      assert.deepEqual(log, [expected]);
    }
  });
  test("a short bound has five milliseconds of grace", async () => {
    for (const [lateMs, expected] of [
      [5, 25],
      [6, "RateLimitExceeded"],
    ] as const) {
      const { time, log, pass, hold } = gateOf(lanes({ rates: "1/20ms" }));
      const grant = hold();
      pass({ maxWaitMs: 20 });
      await time.advance(lateMs);
      grant.release();
      await time.advance(100);
      assert.deepEqual(log, [expected]);
    }
  });
  test("who is refused at its bound is told how late the line is", async () => {
    const { time, pass, hold } = gateOf(lanes({ rates: "1/s" }));
    const grant = hold();
    pass();
    const second = pass({ maxWaitMs: 2000 });
    await time.advance(1100);
    grant.release();
    await time.advance(2000);
    assert.equal((await second).retryAfterMs, 1100);
  });
  test("the wait is counted from the arrival, whenever that was", async () => {
    const { time, pass } = gateOf(lanes({ rates: "1/s" }));
    await time.advance(5000);
    pass();
    const second = pass({ maxWaitMs: 1000 });
    await time.advance(1000);
    assert.equal(((await second) as Grant).waitedMs, 1000);
  });
});

describe("turns", () => {
  test("nobody overtakes a heavy one that has the turn at a total", async () => {
    const { gate, time, log, pass } = gateOf(total({ rates: "4/s" }));
    pass({ weight: 2 });
    pass({ weight: 4, role: "artifact" });
    await time.advance(0);
    assert.equal(gate.tryEnter({ host, role }).isGranted, false);
    await time.advance(1000);
    assert.deepEqual(log, [0, 1000]);
  });
  test("a wait elsewhere, or one that is over, makes nobody wait here", async () => {
    const { gate, time, pass } = gateOf(total({ rates: "99/s" }, { rates: "1/s" }));
    pass();
    pass();
    await time.advance(1000);
    pass({ host: "slow.example" });
    pass({ host: "slow.example" });
    await time.advance(1000);
    pass({ host: "slow.example" });
    await time.advance(0);
    assert.equal(gate.waiting, 1);
    assert.equal(gate.tryEnter({ host, role }).isGranted, true);
    assert.equal(gate.tryEnter({ host, role: "artifact" }).isGranted, true);
  });
  test("counted and uncounted requests take turns at the slot they share", async () => {
    const { gate, time } = gateOf(lanes({ rates: "999/s", max_concurrent: 1 }));
    const order: string[] = [];
    const work = async (method: "GET" | "HEAD") => {
      using _grant = await gate.enter({ host, role, method });
      order.push(method[0] as string);
      await time.sleep(1);
    };
    const all = [..."GGGGHHH"].map(kind => work(kind === "G" ? "GET" : "HEAD"));
    await time.advance(50);
    await Promise.all(all);
    assert.match(order.join(""), /^G(HGHGHG)$/);
  });
  test("a grant made while another is being made keeps the turns", async () => {
    const held: Grant[] = [];
    let isNested = false;
    const { gate, time } = gateOf({ ...lanes({ rates: "99/s" }), global: { max_inflight: 2 } }, event => {
      if (isNested && "outcome" in event && event.outcome === "granted") held.pop()?.release();
    });
    held.push(gate.enter({ host, role }) as Grant, gate.enter({ host, role }) as Grant);
    const order: string[] = [];
    for (const name of ["a.example", "a.example", "b.example"])
      void (gate.enter({ host: name, role }) as Promise<Grant>).then(() => order.push(name));
    isNested = true;
    held.pop()?.release();
    await time.advance(0);
    assert.deepEqual(order, ["a.example", "b.example"]);
  });
});

describe("HEAD", () => {
  test("touches no window, and waits for no spacing", async () => {
    const { gate, time, hold } = gateOf(lanes({ rates: "1/s" }));
    hold().release();
    await time.advance(500);
    hold({ method: "HEAD" }).release();
    await time.advance(500);
    assert.equal(gate.tryEnter({ host, role }).isGranted, true);
    const smooth = gateOf(lanes({ rates: "6/s", shape: "smooth", max_concurrent: 2 }));
    smooth.hold();
    smooth.hold({ method: "HEAD" });
    assert.equal(smooth.refusal({ method: "HEAD" }).constraint.kind, "concurrency");
  });
});

describe("pace", () => {
  const limiterOf = (limits: RatelimitsOptions) => {
    const time = new FakeTime();
    const events: LimiterEvent[] = [];
    const limiter = new RateLimiter(limits, { time, listener: event => events.push(event) });
    const key = (name = host) => limiter.snapshot().keys.find(entry => entry.host === name);
    const visit = (count: number) => {
      for (let call = 0; call < count; call += 1)
        (limiter.tryAcquire({ host: `h${time.monotonicUs()}x${call}.example` }) as Grant).release();
    };
    return { time, events, limiter, key, visit };
  };
  test("each calm hour halves the guard once, and successes alone let it calm", async () => {
    const { time, limiter, key, events } = limiterOf({ defaults: { metadata: { rates: "10/s+5000/h" } } });
    for (let again = 0; again < 3; again += 1) {
      limiter.record429({ host });
      await time.advance(2000);
    }
    assert.equal(key()?.guardMs, 200);
    await time.advance(3_600_000);
    limiter.recordSuccess({ host });
    assert.equal(key()?.guardMs, 100);
    limiter.recordSuccess({ host });
    limiter.tickAimd();
    assert.equal(key()?.guardMs, 100);
    assert.deepEqual(
      events.map(event => "old" in event && [event.old, event.new]),
      [
        [25, 50],
        [50, 100],
        [100, 200],
        [200, 100],
      ],
    );
  });
  test("the guard moves again once the shortest window is over", async () => {
    const { time, limiter, key } = limiterOf({ defaults: { metadata: { rates: "10/s", guard_ms: 0 } } });
    limiter.record429({ host });
    await time.advance(1024);
    limiter.record429({ host });
    assert.equal(key()?.guardMs, 25);
    await time.advance(1);
    limiter.record429({ host });
    assert.equal(key()?.guardMs, 50);
  });
  test("a smooth key is told to be smooth once", async () => {
    const { time, limiter, events } = limiterOf({ defaults: { metadata: { rates: "10/s", guard_ms: 250 } } });
    for (let again = 0; again < 3; again += 1) {
      limiter.record429({ host });
      await time.advance(5000);
    }
    assert.equal(events.length, 1);
  });
  test("spans and spacings are rounded up, and the allowance follows the pace", async () => {
    const { time, limiter, key } = limiterOf({
      defaults: { metadata: { rates: "7/s", guard_ms: 250, shape: "smooth" } },
      aimd: { enabled: true, window_s: 60, decrease_step_pct: 70 },
    });
    for (let call = 0; call < 10; call += 1) limiter.record429({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(key()?.multiplier, 0.3);
    const lane = limiter.tryAcquire({ host });
    assert.ok(lane.isGranted);
    await time.advance(666.666);
    assert.equal(limiter.tryAcquire({ host }).isGranted, false);
    // Half of 7 x 60 x 0.3 is 63.
    for (let call = 0; call < 62; call += 1) limiter.recordSuccess({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(key()?.multiplier, 0.3);
    for (let call = 0; call < 63; call += 1) limiter.recordSuccess({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(key()?.multiplier, 0.35);
  });
  test("a key whose answers are being counted stays, and goes when the count is over and nothing was learned", async () => {
    const { time, limiter, key, visit } = limiterOf({
      defaults: { metadata: { rates: "1/s", guard_ms: 0 } },
      aimd: { enabled: true, window_s: 60 },
    });
    await time.advance(100_000);
    limiter.recordSuccess({ host });
    await time.advance(30_000);
    visit(10);
    assert.ok(key());
    await time.advance(30_000);
    visit(50);
    assert.equal(key(), undefined);
  });
  test("a key that is smooth by policy can be forgotten; one that became smooth cannot", async () => {
    for (const [shape, guard_ms, isKept] of [
      ["smooth", 0, false],
      ["burst", 250, true],
    ] as const) {
      const { time, limiter, key, visit } = limiterOf({
        defaults: { metadata: { rates: "1/s", shape, guard_ms } },
        aimd: { enabled: true, window_s: 60 },
      });
      if (isKept) limiter.record429({ host });
      else limiter.recordSuccess({ host });
      await time.advance(100_000);
      visit(50);
      assert.equal(key() !== undefined, isKept);
    }
  });
});

describe("numbers", () => {
  test("even spacing is rounded up, and follows the tighter of two equal windows", () => {
    assert.equal(evenSpacingUs(parseRates("5/s")), 333_334);
  });
  test("up to 200 stamps are remembered for a window", () => {
    const shape = ({ grain, capacity }: Window) => [grain, capacity];
    assert.deepEqual(
      [200, 201, 5000, 4999].map(limit => shape(makeWindow(limit, 1))),
      [
        [1, 201],
        [2, 102],
        [25, 201],
        [25, 201],
      ],
    );
  });
  test("a limit lowered below one remembered stamp goes by the very last", () => {
    const windows = [makeWindow(5000, 3600e6)];
    const log = new WindowLog();
    for (let i = 1; i <= 990; i += 1) log.write(windows, 1, i * 1e6);
    assert.equal(log.earliestUs([{ ...(windows[0] as Window), limit: 5 }], 0, 1, 1000e6), 990e6 + 3600e6);
    assert.equal(log.earliestUs([{ ...(windows[0] as Window), limit: 16 }], 0, 1, 1000e6), 975e6 + 3600e6);
  });
  test("a grant that did not wait says so", () => {
    const { gate } = gateOf(lanes({ rates: "9/s" }));
    const answer = gate.tryEnter({ host, role });
    assert.ok(answer.isGranted);
    assert.equal(answer.waitedMs, 0);
    assert.equal((gate.enter({ host, role }) as Grant).waitedMs, 0);
  });
  test("the longest path of a split host wins", () => {
    const limiter = new RateLimiter(
      {
        groups: {
          a: { members: ["x.example/a"], metadata: { rates: "9/s" } },
          ab: { members: ["x.example/a/b"], metadata: { rates: "1/s" } },
        },
      },
      { time: new FakeTime() },
    );
    const call = () => limiter.tryAcquire({ host: "x.example", path: "/a/b/c" }).isGranted;
    assert.deepEqual([call(), call()], [true, false]);
  });
});

describe("odds and ends", () => {
  test("a HEAD does not push a smooth key's next send back, and is told of", async () => {
    const events: LimiterEvent[] = [];
    const { gate, time, hold } = gateOf(lanes({ rates: "6/s", shape: "smooth" }), event => events.push(event));
    hold().release();
    await time.advance(200);
    hold({ method: "HEAD" }).release();
    hold({ method: "HEAD", stamp: "granted" }).release();
    await time.advance(50);
    assert.equal(gate.tryEnter({ host, role }).isGranted, true);
    assert.equal(events.filter(event => event.event_type === "rate_head_skipped").length, 2);
  });
  test("without AIMD no number of 429s moves the multiplier; what moves is told by its name", async () => {
    const time = new FakeTime();
    const events: LimiterEvent[] = [];
    const limiter = new RateLimiter(
      { defaults: { metadata: { rates: "10/s", guard_ms: 200 } } },
      { time, listener: event => events.push(event) },
    );
    for (let again = 0; again < 3; again += 1) {
      for (let call = 0; call < 20; call += 1) limiter.record429({ host });
      await time.advance(60_000);
      limiter.tickAimd();
    }
    assert.equal(limiter.snapshot().keys[0]?.multiplier, 1);
    assert.deepEqual(
      events.map(event => event.event_type),
      ["guard_adjust", "shape_adjust"],
    );
  });
  test("a stretched window is rounded up, and a recovery is called calm", async () => {
    const time = new FakeTime();
    const events: LimiterEvent[] = [];
    const limiter = new RateLimiter(
      {
        defaults: { metadata: { rates: "1/s", guard_ms: 250, shape: "smooth" } },
        aimd: { enabled: true, window_s: 60, decrease_step_pct: 70 },
      },
      { time, listener: event => events.push(event) },
    );
    for (let call = 0; call < 10; call += 1) limiter.record429({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    limiter.tryAcquire({ host });
    time.tick(3583.333);
    assert.equal(limiter.tryAcquire({ host }).isGranted, false);
    time.tick(0.001);
    assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    for (let call = 0; call < 30; call += 1) limiter.recordSuccess({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(events.flatMap(event => (event.event_type === "aimd_adjust" ? [event.reason] : [])).at(-1), "calm");
  });
  test("the same cooldown again is no news", () => {
    const events: LimiterEvent[] = [];
    const { gate } = gateOf(lanes({ rates: "1/s" }), event => events.push(event));
    gate.hold(host, role, 1000);
    gate.hold(host, role, 1000);
    assert.equal(events.length, 1);
  });
  test("a total of two windows foretells the later of them, whichever comes first", () => {
    const { hold, pass, refusal } = gateOf(total({ rates: "1/10s+1/s" }));
    hold().release();
    pass();
    assert.equal(refusal().retryAfterMs, 20_000);
  });
  test("who left another lane's line does not count there", () => {
    const { hold, pass, refusal } = gateOf(total({ rates: "1/3s" }));
    const abort = new AbortController();
    hold().release();
    pass({ role: "artifact" });
    pass({ role: "artifact", signal: abort.signal });
    abort.abort();
    for (let call = 0; call < 4; call += 1) pass();
    assert.equal(refusal().retryAfterMs, 18_000);
  });
  test("a line that was served and then lost somebody still foretells exactly", async () => {
    const { time, pass, refusal } = gateOf(lanes({ rates: "2/s" }));
    const abort = new AbortController();
    for (let call = 0; call < 11; call += 1) pass(call === 8 ? { signal: abort.signal } : {});
    await time.advance(2000);
    abort.abort();
    // Six went; four wait for 3 s and 4 s.
    assert.equal(refusal().retryAfterMs, 3000);
    pass();
    pass();
    pass();
    assert.equal(refusal().retryAfterMs, 4000);
  });
  test("an early timer does not end a wait before its bound", async () => {
    const time = new FakeTime({ earlyUs: () => 1000 });
    const gate = new Gate(limitPoliciesFrom(lanes({ rates: "9/s", max_concurrent: 1 }), "test"), time);
    gate.enter({ host, role });
    let endedUs = 0;
    void (gate.enter({ host, role, maxWaitMs: 100 }) as Promise<Grant>).catch(() => {
      endedUs = time.monotonicUs();
    });
    await time.advance(200);
    assert.ok(endedUs >= 100_000, String(endedUs));
  });
  test("at its bound a wait is judged by the later of its lane and its total", async () => {
    const { time, hold, pass } = gateOf(total({ rates: "99/s" }, { rates: "1/s" }));
    const grant = hold();
    const second = pass({ maxWaitMs: 1000 });
    await time.advance(300);
    grant.release();
    await time.advance(1000);
    assert.equal((await second).retryAfterMs, 300);
  });
});
