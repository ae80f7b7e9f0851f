import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { BreakerEvent } from "../src/breaker/breaker-events.ts";
import { BreakerRegistry } from "../src/breaker/breaker-registry.ts";
import { Cooldowns } from "../src/breaker/cooldowns.ts";
import { CLOSED, fail, succeed } from "../src/core/breaker/circuit.ts";
import { outcomeOfResponse } from "../src/core/breaker/classify.ts";
import { Gate } from "../src/gate/gate.ts";
import type { Grant } from "../src/limiter/grant.ts";
import { breakerPoliciesFrom } from "../src/policy/breaker-policy.ts";
import type { BreakersOptions } from "../src/policy/breaker-schema.ts";
import { unknownVariables } from "../src/policy/environment.ts";
import { explainPolicy } from "../src/policy/explanation.ts";
import { limitPoliciesFrom, roleBudgetPolicy } from "../src/policy/limits.ts";
import { checkFile, loadPolicy } from "../src/policy/load.ts";
import { readFields } from "../src/policy/overrides.ts";
import { policyRows } from "../src/policy/policy-row.ts";
import { warningsOf } from "../src/policy/warnings.ts";
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

describe("policy", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "docstokg-survivors-"));
  });
  after(() => rm(folder, { recursive: true }));
  async function file(name: string, text: string): Promise<string> {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  }
  test("explain lists built-in values, a group's, its total, and a host's role in the order they hold", async () => {
    const policy = await loadPolicy({
      ratelimits: {
        extends: "none",
        groups: { pair: { members: ["a.example"], metadata: { max_delay_ms: 7 }, total: { rates: "3/s" } } },
      },
      breakers: {
        extends: "none",
        hosts: { "a.example": { fail_max: 2, roles: { artifact: { fail_max: 1 } } } },
      },
    });
    const values = Object.fromEntries(
      explainPolicy(policy, "a.example", "metadata").map(({ field, value }) => [field, value]),
    );
    assert.deepEqual(values, {
      rates: ["10/SECOND", "5000/HOUR"],
      max_delay_ms: 7,
      count_head: false,
      guard_ms: 25,
      shape: "burst",
      "group pair total.rates": "3/s",
      "breaker.fail_max": 2,
      "breaker.reset_timeout_s": 45,
      "breaker.retry_after_cap_s": 900,
    });
    const artifact = explainPolicy(policy, "a.example", "artifact").find(({ field }) => field === "breaker.fail_max");
    assert.deepEqual(
      artifact?.said.map(({ value }) => value),
      [3, 2, 1],
    );
  });
  test("variables that carry a host are ours", () => {
    assert.deepEqual(
      unknownVariables({
        "DOCSTOKG_RLIMIT__a.example__metadata": "x",
        "DOCSTOKG_BREAKER__a.example": "x",
        "DOCSTOKG_BREAKER_ROLE__a.example__landing": "x",
        DOCSTOKG_BREAKER_RESOLVER__lov: "x",
      }),
      [],
    );
  });
  test("a field without a value, or without a key, is refused", () => {
    for (const field of ["dsn:", "dsn", ":5", "="])
      assert.throws(() => readFields(field, [], "test"), /is not <key>:<value>/, field);
  });
  test("one telling key is enough to know what a file is about", async () => {
    const mixed = "version: 1\ndefaults: { retry_after_cap_s: 5 }\nresolvers: { lov: { fail_max: 3 } }\n";
    assert.deepEqual((await checkFile(await file("mixed.yaml", mixed))).problems, []);
  });
  test("a value on a line of its own is found there, and what a list holds is shown", async () => {
    const text =
      "hosts:\n  a.example:\n    metadata:\n      rates:\n        8/fortnight\n      max_delay_ms:\n        - {}\n        -\n";
    const found = (await checkFile(await file("ratelimits.yaml", text))).problems;
    assert.deepEqual(
      found.map(({ where }) => where.split(":").at(-1)),
      ["5", "7"],
    );
    assert.ok(found[1]?.message.endsWith("found [{},null]"), found[1]?.message);
  });
  test("a file that goes too deep is told so once", async () => {
    const deep = (name: string) => `${name}: ${"{ a: ".repeat(14)}1${" }".repeat(14)}\n`;
    const found = (await checkFile(await file("ratelimits.yaml", deep("x") + deep("y")))).problems;
    assert.equal(found.filter(({ message }) => message.includes("nested deeper")).length, 1);
  });
  test("a resolver has its own numbers, then the defaults, then ours; growth stops at the cap", () => {
    const { resolver, circuit } = breakerPoliciesFrom(
      { defaults: { fail_max: 7 }, resolvers: { lov: { reset_timeout_s: 45 } } },
      "test",
    );
    const numbers = (name: string) => [resolver(name).failMax, resolver(name).resetUs / 1e6, resolver(name).trialCalls];
    assert.deepEqual(numbers("lov"), [7, 45, 1]);
    assert.deepEqual(numbers("other"), [7, 60, 1]);
    assert.equal(breakerPoliciesFrom({}, "test").resolver("x").failMax, 5);
    assert.equal(resolver("lov").resetCapUs, 900e6);
    assert.equal(circuit("a.example", "metadata").resetCapUs, 900e6);
  });
  test("options that say nothing count HEAD and let nobody wait", () => {
    const { countsHead, maxDelayMs } = roleBudgetPolicy({});
    assert.deepEqual([countsHead, maxDelayMs], [true, 0]);
  });
  test("the table shows a group's lane, of whole hosts and of a path", async () => {
    const policy = await loadPolicy({
      breakers: { extends: "none" },
      ratelimits: {
        extends: "none",
        hosts: { "a.example": { metadata: { rates: "1/s" } } },
        groups: {
          part: { members: ["a.example/search/v2"], metadata: { rates: "7/s" } },
          pair: { members: ["b.example", "c.example"], metadata: { rates: "8/s" } },
        },
      },
    });
    assert.deepEqual(
      policyRows(policy)
        .filter(({ role }) => role === "metadata")
        .map(row => `${row.host} ${row.rates}`)
        .slice(1),
      ["a.example 1/SECOND", "group part 7/SECOND", "group pair 8/SECOND"],
    );
  });
  test("warnings look at groups, at split paths, and at totals", async () => {
    const policy = await loadPolicy({
      ratelimits: {
        extends: "none",
        hosts: { "a.example": { total: { rates: "3/s" } } },
        groups: {
          pair: { members: ["b.example", "c.example"], metadata: { rates: "1/3s" } },
          part: { members: ["d.example/x/y"], metadata: { rates: "1/2s" } },
        },
      },
    });
    const told = warningsOf(policy).map(line => line.replace(/ is shorter than the| (?:between|that a call) .*/g, ""));
    for (const line of [
      "a.example metadata: max_delay_ms 200 334 ms",
      "group pair metadata: max_delay_ms 200 3000 ms",
      "group part metadata: max_delay_ms 200 2000 ms",
    ])
      assert.ok(told.includes(line), `${line}\n${told.join("\n")}`);
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
