import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { host, plain, setUp } from "../../test/breaker/kit.ts";
import type { BreakerEvent } from "../breaker/breaker-events.ts";
import { outcomeOfError, outcomeOfResponse } from "../core/breaker/classify.ts";
import { BreakerOpenError } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { breakersOf } from "./registry-breakers.ts";

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
        assert.equal(error.lastFailure, "HTTP 503");
        assert.equal(
          error.message,
          "circuit open for api.example.org (metadata): 5 consecutive failures (the last: HTTP 503), next trial in 1 ms",
        );
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
      /^BreakerOpenError: circuit open for resolver lov \(call to /,
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

  test("a probe that ends with an abort, an exception or a rejection by the limiter frees its slot at once", async () => {
    const { registry, isAllowed } = await halfOpen("metadata");
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

  for (const status of [400, 401, 403, 404, 410, 451]) {
    test(`a probe that is answered with ${status} closes the circuit: the host is alive`, async () => {
      const { registry, isAllowed, answer } = await halfOpen("metadata");
      answer(status);
      assert.equal(registry.state(host).state, "closed");
      assert.equal(isAllowed(), true);
    });
  }

  test("a resolver whose probe is answered with a 404 is closed too", async () => {
    const { time, registry } = setUp();
    for (let call = 0; call < 5; call += 1) registry.onFailure({ host, resolver: "crossref", status: 503 });
    await time.advance(60_000);
    assert.equal(registry.resolverState("crossref"), "half_open");
    registry.allow({ host, resolver: "crossref" }).report({ outcome: { kind: "neutral" }, status: 404 });
    assert.equal(registry.resolverState("crossref"), "closed");
  });

  test("a probe that is never reported loses its slot after the timeout of the call plus a margin", async () => {
    const { time, registry, isAllowed } = await halfOpen("metadata");
    registry.allow({ host, timeoutMs: 10_000 });
    await time.advance(14_999);
    assert.equal(isAllowed(), false);
    await time.advance(1);
    assert.equal(isAllowed(), true);
  });

  test("a probe that is never reported loses its slot after a day, however long its timeoutMs is", async () => {
    for (const timeoutMs of [Number.MAX_SAFE_INTEGER, Number.MAX_VALUE]) {
      const { time, registry, isAllowed } = await halfOpen("metadata");
      registry.allow({ host, timeoutMs });
      await time.advance(86_399_999);
      assert.equal(isAllowed(), false);
      await time.advance(1);
      assert.equal(isAllowed(), true);
    }
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
    assert.equal(registry.state(host).state, "closed");
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

  test("run makes no trial call if an operator opens the circuit during its jitter", async () => {
    const { time, registry, answers } = setUp(plain, () => 0.5);
    answers(503, 5);
    await time.advance(60_000);
    const done = registry.run({ host }, async () => assert.fail("it is called"));
    const rejected = assert.rejects(done, { name: "BreakerOpenError", reason: "cli-open:operator" });
    await time.advance(50);
    registry.open(host, 300);
    await time.advance(200);
    await rejected;
    registry.close(host);
    assert.equal(await registry.run({ host }, async () => "sent"), "sent");
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

test("a timeout of a circuit wakes no waiting call, a reported result does", async () => {
  const { time, registry, answers, isAllowed } = setUp();
  answers(503, 5);
  let woken = 0;
  breakersOf(registry).watch(() => {
    woken += 1;
  });
  await time.advance(60_000);
  assert.equal(isAllowed(), true);
  assert.equal(registry.state(host).state, "half_open");
  assert.equal(woken, 0);
  answers(200, 1);
  assert.equal(woken, 1);
});

test("onFailure applies Retry-After, counts for the resolver and emits the reported values", () => {
  const { registry, events } = setUp({ ...plain, resolvers: { lov: { fail_max: 1, reset_timeout_s: 7 } } });
  registry.onFailure({ host, role: "landing", status: 429, retryAfterMs: 4000, resolver: "lov" });
  assert.equal(registry.remainingMs(host), 4000);
  assert.equal(registry.check({ host: "b.example", resolver: "lov" })?.retryAfterMs, 7000);
  assert.equal(registry.check({ host: "b.example" }), undefined);
  assert.deepEqual(events[0], {
    event_type: "breaker_failure",
    host,
    role: "landing",
    status: 429,
    state: "closed",
    fail_counter: 1,
    exc_type: undefined,
    msg: undefined,
    retry_after_s: 4,
    cooldown_s: 4,
  });
});

test("breaker_before_call has the state in which the call was allowed", async () => {
  const { registry, events, time } = setUp();
  registry.allow({ host, resolver: "lov" }).release();
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, status: 503 });
  await time.advance(60_000);
  registry.allow({ host }).release();
  const emitted = events.filter(event => event.event_type === "breaker_before_call");
  assert.deepEqual(emitted[0], {
    event_type: "breaker_before_call",
    host,
    role: "metadata",
    resolver: "lov",
    allowed: true,
    state: "closed",
    reason: undefined,
    remaining_ms: 0,
  });
  assert.equal(emitted[1]?.state, "half_open");
});

describe("partitions", () => {
  test("a host with per: partition has circuits and cooldowns for each partition, and common orders", async () => {
    const { registry } = setUp({ hosts: { [host]: { per: "partition" } } });
    const reason = (partition?: string) => registry.check({ host, partition })?.reason;
    for (let n = 0; n < 5; n += 1) registry.onFailure({ host, partition: "a", status: 503 });
    registry.onFailure({ host: "API.example.org.", partition: "b", status: 429, retryAfterMs: 60_000 });
    assert.deepEqual(
      [reason("a"), reason("b"), reason("c"), reason()],
      ["failures", "retry-after", undefined, undefined],
    );
    assert.equal(registry.briefState(host, undefined, "a").state, "open");
    assert.equal(registry.briefState(host).state, "closed");

    registry.open(host, 600);
    const ordered = "cli-open:operator";
    assert.deepEqual([reason("a"), reason("b"), reason("c"), reason()], [ordered, ordered, ordered, ordered]);
    registry.close(host);
    assert.deepEqual([reason("a"), reason("b"), reason("c"), reason()], [undefined, undefined, undefined, undefined]);
  });

  test("the state of a partition includes operators' orders for its host", () => {
    const { registry } = setUp({ hosts: { [host]: { per: "partition" } } });
    registry.tryAllow({ host, partition: "a" });
    registry.open(host, 600);
    for (const status of [registry.state(host, undefined, "a"), registry.briefState(host, undefined, "a")])
      assert.deepEqual([status.state, status.remainingMs], ["open", 600_000]);
    const fieldsOf = (partition?: string) => Object.keys(registry.state(host, undefined, partition)).toSorted();
    assert.deepEqual(fieldsOf("a"), fieldsOf());
    registry.close(host);
    registry.onFailure({ host, status: 429, retryAfterMs: 60_000 });
    assert.equal(registry.state(host, undefined, "a").state, "closed", "a cooldown without a partition");
  });

  test("without per: partition the partition of a call makes no difference", () => {
    const { registry } = setUp();
    for (let n = 0; n < 5; n += 1) registry.onFailure({ host, partition: "a", status: 503 });
    assert.equal(registry.check({ host, partition: "b" })?.reason, "failures");
  });

  test("a cooldown of calls without a partition does not stop partitions", () => {
    const { registry } = setUp({ defaults: { per: "partition" } });
    registry.onFailure({ host, status: 429, retryAfterMs: 60_000 });
    assert.equal(registry.check({ host })?.reason, "retry-after");
    assert.equal(registry.check({ host, partition: "a" }), undefined);
  });

  test("an operator's order that ends before the cooldown of a partition leaves the later end", () => {
    const { registry } = setUp({ hosts: { [host]: { per: "partition" } } });
    registry.onFailure({ host, partition: "a", status: 429, retryAfterMs: 600_000 });
    registry.open(host, 60);
    assert.deepEqual(
      ["a", "b"].map(partition => registry.check({ host, partition })?.retryAfterMs),
      [600_000, 60_000],
    );
  });
});

test("a listener of breaker_before_call that takes the trial call or opens the circuit is respected", async () => {
  for (const act of ["take", "open"] as const) {
    const time = new FakeTime();
    let inner: unknown;
    let isArmed = false;
    const listener = (event: BreakerEvent) => {
      if (event.event_type !== "breaker_before_call" || !isArmed) return;
      isArmed = false;
      if (act === "open") registry.open(host, 600);
      else inner = registry.tryAllow({ host });
    };
    const options = { defaults: { fail_max: 1, reset_timeout_s: 1, roles: {} } };
    const registry: BreakerRegistry = new BreakerRegistry(options, { time, random: () => 0, listener });
    registry.onFailure({ host, status: 500 });
    await time.advance(1500);
    isArmed = true;
    assert.equal(registry.tryAllow({ host }).isAllowed, false, act);
    assert.equal(inner !== undefined, act === "take");
  }
});

test("the state of a resolver that an operator has opened is open", () => {
  const { registry } = setUp();
  const order = { kind: "open", ms: 1000, reason: "cli-open:test", isReplacing: false } as const;
  breakersOf(registry).giveOrder({ resolver: "index" }, order);
  assert.equal(registry.resolverState("index"), "open");
});

test("an unknown option is an error, so that a misspelled store is noticed", () => {
  const invalid = () => new BreakerRegistry({}, { stroe: "multiprocess" } as object);
  assert.throws(invalid, /^ConfigError: BreakerRegistry: stroe: unknown option: did you mean store\?/);
});
