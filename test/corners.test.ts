import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BreakerEvent } from "../src/breaker/breaker-events.ts";
import { BreakerRegistry } from "../src/breaker/breaker-registry.ts";
import { Cooldowns } from "../src/breaker/cooldowns.ts";
import { CLOSED, fail, succeed } from "../src/core/breaker/circuit.ts";
import { outcomeOfResponse } from "../src/core/breaker/classify.ts";
import { Gate } from "../src/gate/gate.ts";
import type { Grant } from "../src/limiter/grant.ts";
import type { BreakersOptions } from "../src/policy/breaker-schema.ts";
import { limitPoliciesFrom } from "../src/policy/limits.ts";
import { FakeTime } from "../src/testing/fake-time.ts";

const host = "api.example.org";
const plain: BreakersOptions = {
  defaults: { fail_max: 5, reset_timeout_s: 60 },
  advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
};
const result = (status: number, retryAfterMs?: number) => ({
  outcome: outcomeOfResponse({ status, retryAfterMs }),
  status,
  retryAfterMs,
});
function setUp(options: BreakersOptions = plain) {
  const time = new FakeTime();
  const events: BreakerEvent[] = [];
  const registry = new BreakerRegistry(options, { time, random: () => 0, listener: event => events.push(event) });
  return { time, events, registry };
}

describe("breakers", () => {
  test("a permit ends once: what comes after a report or a release changes nothing", () => {
    const { registry } = setUp();
    const failures = () => registry.state(host).roles[0]?.failures;
    const twice = registry.allow({ host });
    twice.report(result(503));
    twice.report(result(503));
    assert.equal(failures(), 1);
    const released = registry.allow({ host });
    released.release();
    released.report(result(503));
    assert.equal(failures(), 1);
  });

  test("a permit that is reported and released is given back once: a host with another one out is not forgotten", () => {
    for (const end of [
      (permit: ReturnType<BreakerRegistry["allow"]>) => permit.report(result(200)),
      (permit: ReturnType<BreakerRegistry["allow"]>) => permit.release(),
    ]) {
      const { registry } = setUp();
      registry.allow({ host });
      const other = registry.allow({ host });
      end(other);
      other.release();
      for (let visit = 0; visit < 10; visit += 1) registry.allow({ host: `h${visit}.example` }).release();
      assert.ok([...registry.statuses()].some(status => status.host === host));
    }
  });
  test("the two-step form heeds a Retry-After, knows resolvers, and its events say what was reported", () => {
    const { registry, events } = setUp({ ...plain, resolvers: { lov: { fail_max: 1, reset_timeout_s: 7 } } });
    registry.onFailure({ host, role: "landing", status: 429, retryAfterS: 4, resolver: "lov" });
    assert.equal(registry.remainingMs(host), 4000);
    assert.equal(registry.check({ host: "b.example", resolver: "lov" })?.retryAfterMs, 7000);
    assert.equal(registry.check({ host: "b.example" }), undefined);
    assert.deepEqual(events[0], {
      event_type: "breaker_failure",
      host,
      role: "landing",
      status: 429,
      retry_after_s: 4,
    });
  });
  test("an allowed call tells the state it was allowed in", async () => {
    const { registry, events, time } = setUp();
    registry.allow({ host, resolver: "lov" }).release();
    for (let call = 0; call < 5; call += 1) registry.onFailure({ host, status: 503 });
    await time.advance(60_000);
    registry.allow({ host }).release();
    const told = events.filter(event => event.event_type === "breaker_before_call");
    assert.deepEqual(told[0], {
      event_type: "breaker_before_call",
      host,
      role: "metadata",
      resolver: "lov",
      allowed: true,
      state: "closed",
      reason: undefined,
      remaining_ms: 0,
    });
    assert.equal(told[1]?.state, "half_open");
  });
  test("with all probes out the next may go when the first lease ends", async () => {
    const { registry, time } = setUp();
    for (let call = 0; call < 5; call += 1) registry.onFailure({ host, role: "artifact", status: 503 });
    await time.advance(60_000);
    registry.allow({ host, role: "artifact", timeoutMs: 90_000 });
    registry.allow({ host, role: "artifact", timeoutMs: 10_000 });
    const denial = registry.check({ host, role: "artifact" });
    assert.equal(denial?.retryAfterMs, 15_000);
    assert.equal(denial?.constraint.limit, "probe in flight");
  });
  test("what remains is rounded up: nobody is told to come back now and refused again", async () => {
    const { registry, time } = setUp();
    registry.open(host, 1);
    await time.advance(999.5);
    assert.equal(registry.check({ host })?.retryAfterMs, 1);
    assert.equal(registry.remainingMs(host), 1);
  });
  test("only long Retry-Afters in a row raise the reset; a short one between them starts the row again", async () => {
    const { registry, time, events } = setUp({
      defaults: { fail_max: 99, reset_timeout_s: 10 },
      advanced: { rolling_window: { enabled: false } },
    });
    for (const ms of [60_000, 5000, 60_000, 10_000, 60_000, 3000]) {
      registry.allow({ host }).report(result(429, ms));
      await time.advance(ms);
    }
    assert.deepEqual(
      events.filter(event => event.event_type === "breaker_reset_raised"),
      [],
    );
  });

  // core/breaker.ts:105, 69
  test("the first opening is exact whatever the luck of the draw, and a success cannot touch an open circuit", () => {
    const policy = {
      failMax: 1,
      resetUs: 1000,
      resetCapUs: 9000,
      trialCalls: 1,
      successThreshold: 1,
      isAdaptive: true,
    };
    const opened = fail(CLOSED, policy, 0, 0, 0.99);
    assert.deepEqual(opened, { kind: "open", generation: 1, untilUs: 1000, reopened: 0 });
    assert.equal(succeed(opened, policy, 1), opened);
  });
  test("a younger permit's success ends what was asked for, and never an order", () => {
    const cooldowns = new Cooldowns();
    cooldowns.set({ untilUs: 100, reason: "retry-after", afterPermit: 3 });
    assert.equal(cooldowns.endBySuccess(3, 0), false);
    assert.equal(cooldowns.endBySuccess(4, 0), true);
    assert.equal(cooldowns.current(0), undefined);
    cooldowns.set({ untilUs: 100, reason: "retry-after", afterPermit: 3 });
    cooldowns.set({ untilUs: 100, reason: "cli-open:x", afterPermit: 3 });
    assert.equal(cooldowns.current(0)?.reason, "cli-open:x");
    cooldowns.endBySuccess(4, 0);
    assert.equal(cooldowns.current(0)?.reason, "cli-open:x");
  });
});

describe("lanes", () => {
  test("a lane that was prepared is never forgotten", () => {
    const gate = new Gate(limitPoliciesFrom({}, "test"), new FakeTime());
    gate.prepare(host, "metadata");
    for (let visit = 0; visit < 50; visit += 1)
      (gate.enter({ host: `h${visit}.example`, role: "metadata" }) as Grant).giveBack();
    assert.ok([...gate.roleBudgets()].some(lane => lane.name === host));
  });
  test("what is granted and not yet written counts in a total that a reload adds, and comes back from it", () => {
    const limits = (total: object) =>
      limitPoliciesFrom(
        { defaults: { metadata: { rates: "100/s", guard_ms: 0, max_delay_ms: 0 } }, hosts: { [host]: total } },
        "test",
      );
    const gate = new Gate(limits({}), new FakeTime());
    const first = gate.enter({ host, role: "metadata" }) as Grant;
    gate.reload(limits({ total: { rates: "1/h", guard_ms: 0 } }));
    assert.equal(gate.tryEnter({ host, role: "metadata" }), undefined);
    first.giveBack();
    assert.ok(gate.tryEnter({ host, role: "metadata" }));
  });
});

test("changes that nobody waits for warn of nothing", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  const time = new FakeTime();
  const breakers = new BreakerRegistry(plain, { time });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  const grant = gate.enter({ host, role: "metadata" }) as Grant;
  grant.report(result(503));
  grant.release();
  breakers.close(host);
  await new Promise(resolve => setImmediate(resolve));
  process.off("warning", note);
  assert.deepEqual(warnings, []);
});
test("each probe has its own place: one that is released frees one, not both", async () => {
  const { registry, time } = setUp();
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, role: "artifact", status: 503 });
  await time.advance(60_000);
  const [first] = [registry.allow({ host, role: "artifact" }), registry.allow({ host, role: "artifact" })];
  first?.release();
  assert.equal(registry.state(host).roles[0]?.probes, 1);
});
test("a cooldown that changes nothing is not told", () => {
  const { registry, events } = setUp();
  for (const seconds of [60, 60, 5]) registry.open(host, seconds);
  assert.equal(events.filter(event => event.event_type === "breaker_cooldown_set").length, 1);
});
test("after a raise it takes a habit again to raise further", async () => {
  const { registry, time, events } = setUp({
    defaults: { fail_max: 99, reset_timeout_s: 10 },
    advanced: { rolling_window: { enabled: false } },
  });
  for (const ms of [60_000, 60_000, 120_000]) {
    registry.allow({ host }).report(result(429, ms));
    await time.advance(ms);
  }
  const raises = events.filter(event => event.event_type === "breaker_reset_raised");
  assert.deepEqual(
    raises.map(({ old_s, new_s }) => [old_s, new_s]),
    [[10, 60]],
  );
});
