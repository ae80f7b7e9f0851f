import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { outcomeOfError, outcomeOfResponse } from "../core/breaker/classify.ts";
import { BreakerOpenError, ConfigError } from "../errors.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import type { Role } from "../policy/roles.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { BreakerEvent } from "./breaker-events.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import type { AllowRequest } from "./breakers.ts";
import { breakersOf } from "./registry-breakers.ts";

const host = "api.example.org";
/** Without rolling window and adaptive resets, so that only the circuits act. */
const plain: BreakersOptions = {
  defaults: { fail_max: 5, reset_timeout_s: 60 },
  advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
};

function setUp(options: BreakersOptions = plain, random: () => number = () => 0) {
  const time = new FakeTime();
  const events: BreakerEvent[] = [];
  const registry = new BreakerRegistry(options, { time, random, listener: event => events.push(event) });
  const answer = (status: number, request: Partial<AllowRequest> = {}, retryAfterMs?: number) =>
    registry
      .allow({ host, ...request })
      .report({ outcome: outcomeOfResponse({ status, retryAfterMs }), status, retryAfterMs });
  const answers = (status: number, times: number, request: Partial<AllowRequest> = {}) => {
    for (let call = 0; call < times; call += 1) answer(status, request);
  };
  const isAllowed = (request: Partial<AllowRequest> = {}) => registry.check({ host, ...request }) === undefined;
  return { time, events, registry, answer, answers, isAllowed };
}

describe("circuits", () => {
  test("five consecutive 503s open the circuit of a role for its reset timeout, then one probe passes", async () => {
    const { time, registry, answers, isAllowed } = setUp();
    answers(503, 5);
    await time.advance(59_999);
    assert.equal(isAllowed(), false);
    assert.throws(
      () => registry.allow({ host }),
      (error: unknown) => {
        assert.ok(error instanceof BreakerOpenError);
        assert.equal(error.reason, "failures");
        assert.equal(error.cooldownRemainingMs, 1);
        assert.equal(error.retryAfterMs, 1);
        assert.equal(error.message, "api.example.org (metadata) is cut off for another 1 ms: failures");
        return true;
      },
    );
    await time.advance(1);
    assert.equal(isAllowed(), true);
  });

  test("four failures, a success and four failures leave the circuit closed", () => {
    const { registry, answers } = setUp();
    answers(503, 4);
    answers(200, 1);
    answers(503, 4);
    assert.equal(registry.state(host).state, "closed");
  });

  test("each role has its own limits and circuit, and the host reports its worst state", async () => {
    const { time, registry, answers, isAllowed } = setUp({ advanced: plain.advanced });
    answers(503, 3, { role: "artifact" });
    answers(503, 4, { role: "metadata" });
    assert.deepEqual([isAllowed({ role: "artifact" }), isAllowed({ role: "metadata" })], [false, true]);
    assert.equal(registry.state(host).state, "open");
    answers(503, 1, { role: "metadata" });
    assert.equal(isAllowed({ role: "metadata" }), false);
    await time.advance(45_000);
    assert.deepEqual([isAllowed({ role: "artifact" }), isAllowed({ role: "metadata" })], [false, true]);
    await time.advance(75_000);
    assert.equal(isAllowed({ role: "artifact" }), true);
    assert.equal(isAllowed({ role: "landing" }), true);
  });

  test("the circuit of a resolver counts failures over all hosts, and denies only that resolver", () => {
    const { answer, isAllowed } = setUp({
      ...plain,
      resolvers: { landing_page: { fail_max: 4, reset_timeout_s: 45 } },
    });
    for (const name of ["a.example", "b.example", "c.example", "d.example"]) {
      answer(503, { host: name, resolver: "landing_page" });
    }
    assert.equal(isAllowed({ host: "e.example", resolver: "landing_page" }), false);
    assert.equal(isAllowed({ host: "e.example", resolver: "crossref" }), true);
    assert.equal(isAllowed({ host: "a.example" }), true);
  });

  test("a Retry-After of one host does not block its resolver at other hosts, and a denial names the resolver", async () => {
    const { time, answer, registry } = setUp({
      defaults: { fail_max: 99, reset_timeout_s: 10 },
      resolvers: { lov: { fail_max: 3, reset_timeout_s: 10 } },
      advanced: { rolling_window: { enabled: false } },
    });
    for (let call = 0; call < 3; call += 1) {
      answer(429, { resolver: "lov" }, 120_000);
      await time.advance(120_000);
      if (call < 2) continue;
      assert.equal(registry.check({ host: "other.example", resolver: "lov" })?.retryAfterMs ?? 0, 0);
    }
    for (let call = 0; call < 3; call += 1) registry.onFailure({ host: "c.example", resolver: "lov", status: 503 });
    assert.throws(
      () => registry.allow({ host: "d.example", resolver: "lov" }),
      /^BreakerOpenError: resolver lov \(metadata\) is cut off/,
    );
  });

  test("an invalid timeoutMs is a RangeError", () => {
    const { registry } = setUp();
    for (const timeoutMs of [Number.NaN, 0, -1, Number.POSITIVE_INFINITY]) {
      assert.throws(
        () => registry.allow({ host, timeoutMs }),
        /timeoutMs must be a finite number greater than 0, got /,
      );
    }
  });

  test("limits of a host override those of a role, and limits of a role at a host override both", () => {
    const { answers, isAllowed } = setUp({
      ...plain,
      defaults: { roles: { metadata: { fail_max: 9 } } },
      hosts: {
        "A.example": { fail_max: 2 },
        "b.example": { fail_max: 2, roles: { metadata: { fail_max: 1 } } },
      },
    });
    const failuresToOpen = (name: string) => {
      let failures = 0;
      while (isAllowed({ host: name })) {
        answers(500, 1, { host: name });
        failures += 1;
      }
      return failures;
    };
    assert.deepEqual(["a.example", "b.example", "c.example"].map(failuresToOpen), [2, 1, 9]);
  });
});

describe("half-open", () => {
  async function halfOpen(role: Role) {
    const set = setUp();
    set.answers(503, 5, { role });
    await set.time.advance(60_000);
    return set;
  }

  test("half-open admits one metadata probe at a time, and two artifact probes", async () => {
    for (const [role, trials] of [
      ["metadata", 1],
      ["artifact", 2],
    ] as const) {
      const { registry, isAllowed } = await halfOpen(role);
      for (let trial = 0; trial < trials; trial += 1) registry.allow({ host, role });
      assert.equal(isAllowed({ role }), false, role);
      assert.equal(registry.state(host).state, "half_open");
    }
  });

  test("a successful probe closes the circuit, a failed one opens it for another full reset timeout", async () => {
    const good = await halfOpen("metadata");
    good.answer(200);
    assert.equal(good.registry.state(host).state, "closed");
    const bad = await halfOpen("metadata");
    bad.answer(500);
    await bad.time.advance(59_999);
    assert.equal(bad.isAllowed(), false);
    await bad.time.advance(1);
    assert.equal(bad.isAllowed(), true);
  });

  test("a probe that ends with a 404, an abort, an exception or a rejection by the limiter frees its slot at once", async () => {
    const { registry, isAllowed, answer } = await halfOpen("metadata");
    answer(404);
    assert.equal(isAllowed(), true);
    const abort = new DOMException("no longer needed", "AbortError");
    registry.allow({ host }).report({ outcome: outcomeOfError(abort) });
    assert.equal(isAllowed(), true);
    registry.allow({ host }).release();
    assert.equal(isAllowed(), true);
    assert.throws(() => {
      using _permit = registry.allow({ host });
      throw new Error("a bug in the caller");
    }, /a bug/);
    assert.equal(isAllowed(), true);
    assert.equal(registry.state(host).state, "half_open");
  });

  test("a probe that is never reported loses its slot after the timeout of the call plus a margin", async () => {
    const { time, registry, isAllowed } = await halfOpen("metadata");
    registry.allow({ host, timeoutMs: 10_000 });
    await time.advance(14_999);
    assert.equal(isAllowed(), false);
    await time.advance(1);
    assert.equal(isAllowed(), true);
  });

  test("probes get a jitter of at most jitter_ms, calls of a closed circuit get none", async () => {
    let draw = 0;
    const { time, registry, answers } = setUp(plain, () => (draw++ % 100) / 100);
    assert.equal(registry.allow({ host }).jitterMs, 0);
    answers(503, 5);
    await time.advance(60_000);
    const jitters = Array.from({ length: 100 }, () => {
      const permit = registry.allow({ host });
      permit.release();
      return permit.jitterMs;
    });
    assert.ok(jitters.every(ms => Number.isInteger(ms) && ms >= 0 && ms <= 150));
    assert.ok(new Set(jitters).size > 90);
  });

  test("a late result from before the circuit opened changes nothing", async () => {
    const { time, registry, answers } = setUp();
    const early = registry.allow({ host });
    const another = registry.allow({ host });
    answers(503, 5);
    early.report({ outcome: { kind: "success" } });
    assert.equal(registry.state(host).state, "open");
    await time.advance(60_000);
    const probe = registry.allow({ host });
    another.report({ outcome: outcomeOfResponse({ status: 503 }) });
    assert.equal(registry.state(host).state, "half_open");
    probe.report({ outcome: { kind: "success" } });
    assert.equal(registry.state(host).state, "closed");
  });
});

describe("classification", () => {
  test("404s and 403s are neutral and do not reset the count of consecutive failures", () => {
    const { registry, answers } = setUp();
    answers(404, 20);
    answers(403, 20);
    assert.equal(registry.state(host).roles[0]?.failures, 0);
    answers(503, 4);
    answers(404, 1);
    assert.equal(registry.state(host).state, "closed");
    answers(503, 1);
    assert.equal(registry.state(host).state, "open");
  });

  test("broken connections are failures, calls aborted by the caller are not", () => {
    const { registry } = setUp();
    const reset = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
    const abort = new DOMException("enough", "AbortError");
    for (let call = 0; call < 5; call += 1) registry.onFailure({ host: "aborted.example", error: abort });
    assert.equal(registry.state("aborted.example").state, "closed");
    for (let call = 0; call < 5; call += 1) registry.onFailure({ host, error: reset });
    assert.equal(registry.state(host).state, "open");
  });

  test("classify.failure_statuses decides which statuses are failures", () => {
    const { registry } = setUp({ ...plain, defaults: { fail_max: 2, classify: { failure_statuses: [418] } } });
    registry.onFailure({ host, status: 418 });
    registry.onFailure({ host, status: 418 });
    assert.equal(registry.state(host).state, "open");
    registry.onFailure({ host: "b.example", status: 503 });
    registry.onFailure({ host: "b.example", status: 503 });
    assert.equal(registry.state("b.example").state, "closed");
  });

  test("run reports success when the call resolves, classifies its error when it rejects, and keeps its own report", async () => {
    const { registry } = setUp();
    assert.equal(await registry.run({ host }, async () => "an answer"), "an answer");
    const reset = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
    for (let call = 0; call < 5; call += 1) {
      await assert.rejects(
        registry.run({ host }, () => Promise.reject(reset)),
        error => error === reset,
      );
    }
    await assert.rejects(
      registry.run({ host }, async () => assert.fail("must not be called")),
      BreakerOpenError,
    );
    for (let call = 0; call < 5; call += 1) {
      await registry.run({ host: "b.example" }, async permit =>
        permit.report({ outcome: registry.classify({ status: 503 }) }),
      );
    }
    assert.equal(registry.state("b.example").state, "open");
    for (let call = 0; call < 9; call += 1) {
      await assert.rejects(registry.run({ host: "c.example" }, () => Promise.reject(new TypeError("a bug of ours"))));
    }
    assert.equal(registry.state("c.example").state, "closed");
  });

  test("onSuccess and onFailure leave no probe and no permit behind", async () => {
    const { time, registry, isAllowed, answers } = setUp();
    answers(503, 5);
    await time.advance(60_000);
    registry.allow({ host });
    registry.allow({ host: "b.example" });
    registry.onFailure({ host, status: 404 });
    assert.equal(isAllowed(), true);
    assert.equal(registry.state(host).state, "half_open");
    for (let visit = 0; visit < 20_000; visit += 1) {
      registry.allow({ host: `h${visit}.example` });
      registry.onSuccess({ host: `h${visit}.example` });
    }
    assert.ok([...registry.statuses()].length <= 16_384);
  });

  test("onSuccess returns its probe when success_threshold needs more successes", async () => {
    const { time, registry, isAllowed } = setUp({
      ...plain,
      defaults: { fail_max: 1, reset_timeout_s: 60, half_open: { success_threshold: 2 } },
    });
    registry.onFailure({ host, status: 503 });
    await time.advance(60_000);
    registry.allow({ host });
    registry.onSuccess({ host });
    assert.equal(isAllowed(), true);
    registry.allow({ host });
    registry.onSuccess({ host });
    assert.equal(registry.state(host).state, "closed");
  });

  test("a 403 with an empty quota is a throttle, and a 503 replayed by an archive is neutral", () => {
    const { registry } = setUp();
    assert.deepEqual(registry.classify({ status: 403, remaining: 0 }), {
      kind: "failure",
      cause: "status",
      throttled: true,
    });
    assert.deepEqual(registry.classify({ status: 503, isMemento: true }), { kind: "neutral" });
  });

  test("run waits for the jitter of a probe before it calls", async () => {
    const { time, registry, answers } = setUp(plain, () => 0.5);
    answers(503, 5);
    await time.advance(60_000);
    let calledMs = 0;
    const done = registry.run({ host }, async () => {
      calledMs = time.monotonicUs() / 1000;
    });
    await time.advance(200);
    await done;
    assert.equal(calledMs, 60_075);
  });

  test("onSuccess ends no cooldown, because the start of its call is unknown", () => {
    const { registry, answer, isAllowed } = setUp();
    answer(429, {}, 900_000);
    registry.allow({ host: "b.example" });
    registry.onSuccess({ host });
    assert.equal(isAllowed(), false);
  });

  test("onFailure opens the circuit, onSuccess closes it", async () => {
    const { time, registry, isAllowed } = setUp();
    for (let call = 0; call < 5; call += 1) registry.onFailure({ host, status: 500 });
    assert.equal(isAllowed(), false);
    await time.advance(60_000);
    registry.onSuccess({ host });
    assert.equal(registry.state(host).state, "closed");
  });
});

describe("cooldowns", () => {
  test("Retry-After on 429 and 503 starts a cooldown of all roles, at most retry_after_cap_s", async () => {
    const { time, registry, answer, isAllowed } = setUp();
    answer(429, {}, 4000);
    assert.deepEqual([isAllowed(), isAllowed({ role: "artifact" })], [false, false]);
    assert.equal(registry.state(host).reason, "retry-after");
    await time.advance(3999);
    assert.equal(isAllowed(), false);
    await time.advance(1);
    assert.equal(isAllowed(), true);
    answer(503, {}, 2_000_000);
    assert.equal(registry.remainingMs(host), 900_000);
  });

  test("an invalid Retry-After, or one on another status, starts no cooldown", () => {
    const { registry, answer } = setUp();
    answer(500, {}, 4000);
    answer(404, {}, 4000);
    answer(200, {}, 4000);
    answer(429);
    answer(429, {}, 0);
    assert.equal(registry.remainingMs(host), 0);
  });

  test("the later cooldown wins, and a success of an older permit does not end it", () => {
    const { registry, answer } = setUp();
    const older = registry.allow({ host });
    const alsoOlder = registry.allow({ host });
    answer(429, {}, 900_000);
    alsoOlder.report({ outcome: outcomeOfResponse({ status: 429 }), retryAfterMs: 5000 });
    assert.equal(registry.remainingMs(host), 900_000);
    older.report({ outcome: { kind: "success" } });
    assert.equal(registry.remainingMs(host), 900_000);
  });

  test("a throttle of an older generation still starts its cooldown", () => {
    const { registry, answers } = setUp();
    const older = registry.allow({ host });
    answers(503, 5);
    older.report({ outcome: outcomeOfResponse({ status: 429 }), retryAfterMs: 300_000 });
    assert.equal(registry.remainingMs(host), 300_000);
  });

  test("a circuit opened by an operator is closed only by time or an operator", async () => {
    const { time, registry, isAllowed } = setUp();
    registry.open(host, 300, "maintenance");
    assert.equal(registry.state(host).reason, "cli-open:maintenance");
    assert.equal(registry.state(host).openUntilWallMs, time.wallMs() + 300_000);
    registry.onSuccess({ host });
    assert.equal(isAllowed(), false);
    registry.close(host);
    assert.equal(isAllowed(), true);
    registry.open(host, 300);
    await time.advance(300_000);
    assert.equal(isAllowed(), true);
    assert.throws(() => registry.open(host, 0), RangeError);
    assert.throws(() => registry.allow(JSON.parse('{ "host": "a.example", "role": "pdf" }')), /"pdf" is no role/);
  });

  test("failures within the rolling window start a cooldown even if no role reaches fail_max", async () => {
    const { time, answers, registry, isAllowed } = setUp({
      defaults: { fail_max: 99 },
      advanced: { rolling_window: { window_s: 10, threshold_failures: 3, cooldown_s: 60 } },
    });
    for (const [waitMs, role] of [
      [0, "metadata"],
      [4000, "artifact"],
      [5000, "landing"],
    ] as const) {
      await time.advance(waitMs);
      answers(500, 1, { role });
    }
    assert.equal(registry.state(host).reason, "rolling-window");
    await time.advance(59_999);
    assert.equal(isAllowed(), false);
    await time.advance(1);
    assert.equal(isAllowed(), true);
    for (const waitMs of [0, 5000, 6000]) {
      await time.advance(waitMs);
      answers(500, 1);
    }
    assert.equal(isAllowed(), true);
  });

  test("a successful probe clears the rolling window of its host", async () => {
    const { time, registry, answers } = setUp({
      defaults: { fail_max: 5, reset_timeout_s: 1 },
      advanced: { adaptive_reset: { enabled: false } },
    });
    answers(503, 5);
    await time.advance(1000);
    answers(200, 1);
    answers(503, 1);
    assert.equal(registry.state(host).state, "closed");
    assert.equal(registry.state(host).windowFailures, 1);
  });

  test("by default six failures within 30 s start a cooldown of 60 s", () => {
    const { registry, answers } = setUp({});
    for (const role of ["metadata", "artifact", "landing"] as const) answers(500, 2, { role });
    assert.equal(registry.remainingMs(host), 60_000);
    assert.equal(registry.state(host).windowFailures, 0);
  });

  test("a step of the wall clock does not change the end of a cooldown", async () => {
    const { time, answer, isAllowed } = setUp();
    answer(429, {}, 4000);
    time.stepWall(1_000_000);
    assert.equal(isAllowed(), false);
    time.stepWall(-2_000_000);
    await time.advance(4000);
    assert.equal(isAllowed(), true);
  });

  test("repeated Retry-Afters longer than the reset timeout raise it for the run", async () => {
    const { time, answer, events, registry, answers } = setUp({
      defaults: { fail_max: 3, reset_timeout_s: 10 },
      advanced: { rolling_window: { enabled: false } },
    });
    const raises = () => events.filter(event => event.event_type === "breaker_reset_raised");
    answer(429, {}, 120_000);
    await time.advance(120_000);
    assert.deepEqual(raises(), []);
    answer(429, {}, 120_000);
    assert.deepEqual(raises(), [{ event_type: "breaker_reset_raised", host, old_s: 10, new_s: 120 }]);
    await time.advance(120_000);
    answers(503, 1);
    assert.equal(registry.remainingMs(host), 120_000);
  });
});

describe("events", () => {
  test("an outage emits closed, open, half_open, closed, and each denial has its remaining time", async () => {
    const { time, events, registry, answers, answer } = setUp();
    answers(503, 5);
    await time.advance(20_000);
    assert.throws(() => registry.allow({ host }), BreakerOpenError);
    await time.advance(40_000);
    answer(200);
    const changes = events.filter(event => event.event_type === "breaker_state_change");
    assert.deepEqual(
      changes.map(change => [change.old, change.new, change.host, change.role, change.reset_timeout_s]),
      [
        ["closed", "open", host, "metadata", 60],
        ["open", "half_open", host, "metadata", 60],
        ["half_open", "closed", host, "metadata", 60],
      ],
    );
    const denied = events.filter(event => event.event_type === "breaker_before_call" && !event.allowed);
    assert.deepEqual(
      denied.map(event => "remaining_ms" in event && [event.reason, event.remaining_ms]),
      [["failures", 40_000]],
    );
    assert.equal(events.filter(event => event.event_type === "breaker_failure").length, 5);
    assert.equal(events.filter(event => event.event_type === "breaker_success").length, 1);
  });

  test("a listener can be removed, and one that throws breaks nothing", async () => {
    const { registry, answers } = setUp();
    const received: string[] = [];
    const stop = registry.listen(event => received.push(event.event_type));
    const warned = new Promise<Error>(resolve => process.once("warning", resolve));
    registry.listen(() => {
      throw new Error("this listener is broken too");
    });
    answers(503, 1);
    assert.equal((await warned).message, "this listener is broken too");
    assert.deepEqual(received, ["breaker_before_call", "breaker_failure"]);
    stop();
    const warnedLater = new Promise<Error>(resolve => process.once("warning", resolve));
    registry.listen((async () => {
      throw new Error("an asynchronous one, too");
    }) as () => void);
    answers(503, 4);
    assert.equal((await warnedLater).message, "an asynchronous one, too");
    assert.equal(received.length, 2);
    assert.equal(registry.state(host).state, "open");
  });
});

test("a timeout of a circuit wakes no waiting call, a reported result does", async () => {
  const { time, registry, answers, isAllowed } = setUp();
  answers(503, 5);
  let woken = 0;
  breakersOf(registry).onUnblocked(() => {
    woken += 1;
  });
  await time.advance(60_000);
  assert.equal(isAllowed(), true);
  assert.equal(registry.state(host).state, "half_open");
  assert.equal(woken, 0);
  answers(200, 1);
  assert.equal(woken, 1);
});

describe("eviction and reload", () => {
  test("hosts without failures are evicted, others are not", () => {
    const { registry, answers } = setUp();
    answers(503, 1, { host: "ailing.example" });
    const permit = registry.allow({ host: "busy.example" });
    registry.open("closed.example", 60);
    for (let visit = 0; visit < 10_000; visit += 1) {
      answers(200, 1, { host: `h${visit}.example` });
      answers(404, 1, { host: `i${visit}.example` });
      registry.allow({ host: `j${visit}.example` }).release();
    }
    const names = new Set([...registry.statuses()].map(status => status.host));
    assert.ok(names.size <= 16_384, `${names.size} hosts are remembered`);
    for (const name of ["ailing.example", "busy.example", "closed.example"]) assert.ok(names.has(name), name);
    permit.release();
  });

  test("failed hosts that are not called for an hour are evicted", async () => {
    const { time, registry, answers } = setUp();
    for (let visit = 0; visit < 17_000; visit += 1) answers(503, 1, { host: `dead${visit}.example` });
    await time.advance(3_700_000);
    for (let visit = 0; visit < 17_000; visit += 1) answers(503, 1, { host: `gone${visit}.example` });
    const names = [...registry.statuses()].map(status => status.host);
    assert.ok(names.filter(name => name.startsWith("dead")).length < 3000, String(names.length));
  });

  test("a lowered threshold_failures applies at once", () => {
    const { registry, answers } = setUp({ defaults: { fail_max: 99 } });
    answers(503, 4);
    registry.reload({ defaults: { fail_max: 99 }, advanced: { rolling_window: { threshold_failures: 2 } } });
    answers(503, 1);
    assert.equal(registry.state(host).reason, "rolling-window");
  });

  test("close clears everything about a host, and closing an unknown host emits no event", () => {
    const { registry, answers, events } = setUp();
    registry.close("never.example");
    assert.deepEqual(events, []);
    answers(503, 5);
    registry.close(host);
    assert.deepEqual([registry.state(host).state, registry.state(host).windowFailures], ["closed", 0]);
  });

  test("reload applies at once, and open circuits keep their end", async () => {
    const { time, registry, answers, isAllowed } = setUp();
    answers(503, 5);
    answers(503, 2, { host: "b.example" });
    registry.reload({ ...plain, defaults: { fail_max: 3, reset_timeout_s: 5 } });
    answers(503, 1, { host: "b.example" });
    assert.equal(registry.remainingMs("b.example"), 5000);
    await time.advance(59_999);
    assert.equal(isAllowed(), false);
    await time.advance(1);
    assert.equal(isAllowed(), true);
    assert.throws(() => registry.reload({ defaults: { fail_max: 0 } }), ConfigError);
    assert.throws(
      () => registry.reload({ advanced: { cooldown_store: { backend: "redis" } } }),
      /backend "redis" is not supported by BreakerRegistry.*use createHub/,
    );
  });

  test("invalid options are a ConfigError that names each path", () => {
    assert.throws(
      () =>
        new BreakerRegistry({
          defaults: { fail_max: 0, reset_timeout_s: 0 },
          hosts: { "not a host": {}, "a.example": JSON.parse('{"failmax": 3}') },
        }),
      (error: unknown) => {
        assert.ok(error instanceof ConfigError);
        assert.deepEqual(
          error.problems.map(({ path }) => path),
          ["defaults.fail_max", "defaults.reset_timeout_s", "hosts.not a host", "hosts.a.example.failmax"],
        );
        return true;
      },
    );
  });
});
