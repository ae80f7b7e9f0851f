import assert from "node:assert/strict";
import { test } from "node:test";
import { role } from "../../test/limiter/kit.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { BreakerOpenError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";
import { RateLimiter } from "./rate-limiter.ts";

const host = "api.example.org";

function setUp(limits: RatelimitsOptions = {}) {
  const time = new FakeTime();
  const breakers = new BreakerRegistry(
    {
      defaults: { fail_max: 3, reset_timeout_s: 60 },
      advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
    },
    { time, random: () => 0.5 },
  );
  const all = { defaults: { metadata: { rates: "100/s", guard_ms: 0, max_delay_ms: 1000 } }, ...limits };
  const gate = new Gate(limitPoliciesFrom(all, "test"), time, { breakers });
  const log: string[] = [];
  const start = (name: string, request: Partial<EntryRequest> = {}) => {
    const record = (what: string) => log.push(`${name} ${what} at ${time.monotonicUs() / 1000}`);
    const enter = async () => gate.enter({ host, role: "metadata", ...request });
    return enter().then(
      grant => {
        record("granted");
        return grant;
      },
      error => {
        record(error.name);
        return error;
      },
    );
  };
  const answer = (grant: Grant, status: number, retryAfterMs?: number) => {
    grant.report({ outcome: outcomeOfResponse({ status, retryAfterMs }), status, retryAfterMs });
    grant.release();
  };
  const fail = (name = host) => {
    for (let call = 0; call < 3; call += 1) breakers.onFailure({ host: name, status: 503 });
  };
  /** No request waits, no timer is armed, no slot is held. */
  const assertClean = () => {
    assert.equal(gate.waiting, 0);
    assert.equal(gate.inFlight, 0);
    assert.equal(time.armedTimers, 0);
  };
  return { time, breakers, gate, log, start, answer, fail, assertClean };
}

test("a call to a host with an open circuit is refused at once and charges no window", () => {
  const { gate, fail } = setUp();
  fail();
  assert.throws(
    () => gate.enter({ host, role: "metadata" }),
    (error: unknown) => {
      assert.ok(error instanceof BreakerOpenError);
      assert.equal(error.cooldownRemainingMs, 60_000);
      assert.equal(error.constraint.kind, "breaker");
      return true;
    },
  );
  const refusal = gate.check({ host, role: "metadata" });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 60_000);
  for (const { log: used, inFlight } of gate.roleBudgets())
    assert.deepEqual([used.written, used.pending, inFlight], [0, 0, 0]);
});

test("a refusal by the limiter takes no probe", async () => {
  const { gate, breakers, time, fail, start } = setUp({
    defaults: { metadata: { rates: "1/1000s", max_delay_ms: 0 } },
  });
  ((await start("first")) as Grant).release();
  fail();
  await time.advance(60_000);
  assert.equal(gate.tryEnter({ host, role: "metadata" }), undefined);
  assert.equal(breakers.state(host).roles[0]?.probes, 0);
  assert.equal(breakers.check({ host }), undefined);
});

test("a request waits for a cooldown that ends within its bound", async () => {
  const { time, start, answer, log, assertClean } = setUp();
  answer((await start("a")) as Grant, 429, 800);
  const waiting = start("b");
  await start("c", { maxWaitMs: 700 });
  await time.advance(1000);
  assert.deepEqual(log, ["a granted at 0", "c BreakerOpenError at 0", "b granted at 800"]);
  ((await waiting) as Grant).release();
  assertClean();
});

test("a cooldown that starts while a request waits delays it, or refuses it if it ends after the bound", async () => {
  const { time, start, answer, log, assertClean } = setUp({
    defaults: { metadata: { rates: "1/s", guard_ms: 0, max_delay_ms: 5000 } },
  });
  const first = (await start("first")) as Grant;
  first.written();
  const patient = start("patient", { maxWaitMs: Number.POSITIVE_INFINITY });
  const hasty = start("hasty");
  await time.advance(100);
  answer(first, 429, 60_000);
  await time.advance(60_100);
  assert.deepEqual(log, ["first granted at 0", "hasty BreakerOpenError at 100", "patient granted at 60100"]);
  ((await patient) as Grant).release();
  await hasty;
  assertClean();
});

test("after the reset one probe is sent, and the other requests wait for its outcome", async () => {
  const { time, fail, start, answer, log, assertClean } = setUp();
  fail();
  const calls = ["a", "b", "c"].map(name => start(name, { maxWaitMs: Number.POSITIVE_INFINITY }));
  await time.advance(60_000);
  assert.deepEqual(log, ["a granted at 60000"]);
  const impatient = await start("d", { maxWaitMs: 0 });
  assert.ok(impatient instanceof BreakerOpenError);
  await time.advance(300);
  answer((await calls[0]) as Grant, 200);
  await time.advance(0);
  assert.deepEqual(log.slice(2), ["b granted at 60300", "c granted at 60300"]);
  for (const call of calls) ((await call) as Grant).release();
  assertClean();
});

test("a request without a bound of its own waits for a probe as long as max_delay_ms allows", async () => {
  const { time, fail, start, answer, log, assertClean } = setUp();
  fail();
  await time.advance(60_000);
  const probe = (await start("probe")) as Grant;
  const late = start("late");
  await time.advance(500);
  const inTime = start("in time");
  await time.advance(600);
  answer(probe, 200);
  await time.advance(0);
  const [, ...ends] = log;
  assert.deepEqual(ends, ["late BreakerOpenError at 61000", "in time granted at 61100"]);
  await late;
  ((await inTime) as Grant).release();
  assertClean();
});

test("a request without a bound of its own is refused when the probe that it waits for fails", async () => {
  const { time, fail, start, answer, log, assertClean } = setUp();
  fail();
  await time.advance(60_000);
  const probe = (await start("probe")) as Grant;
  const waiting = start("waiting");
  await time.advance(400);
  answer(probe, 503);
  await waiting;
  assert.deepEqual(log.slice(1), ["waiting BreakerOpenError at 60400"]);
  assertClean();
});

test("when a probe fails, requests keep waiting within their bounds, and the others are refused", async () => {
  const { time, fail, start, answer, log, assertClean } = setUp();
  fail();
  const probe = start("probe", { maxWaitMs: 60_000 });
  const patient = start("patient", { maxWaitMs: Number.POSITIVE_INFINITY });
  const bounded = start("bounded", { maxWaitMs: 61_000 });
  await time.advance(60_000);
  answer((await probe) as Grant, 503);
  await time.advance(60_000);
  assert.deepEqual(log, ["probe granted at 60000", "bounded BreakerOpenError at 60000", "patient granted at 120000"]);
  await bounded;
  ((await patient) as Grant).release();
  assertClean();
});

test("when a probe fails, waiting requests use the new reset time, not the lease of the probe", async () => {
  const time = new FakeTime();
  const options = {
    defaults: { fail_max: 1, reset_timeout_s: 5 },
    advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
  };
  const breakers = new BreakerRegistry(options, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates: "99/s" } } }, "test"), time, { breakers });
  breakers.onFailure({ host, status: 503 });
  const grantedMs: number[] = [];
  for (let call = 0; call < 2; call += 1) {
    void (gate.enter({ host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY }) as Promise<Grant>).then(grant => {
      grantedMs.push(time.monotonicUs() / 1000);
      if (grantedMs.length === 1) grant.report({ outcome: outcomeOfResponse({ status: 503 }), status: 503 });
      grant.release();
    });
  }
  await time.advance(20_000);
  assert.deepEqual(grantedMs, [5000, 10_000]);
});

test("a denial names the later of a cooldown and an open circuit", () => {
  const { breakers, gate } = setUp();
  for (let call = 0; call < 3; call += 1) breakers.onFailure({ host, status: 503 });
  breakers.onFailure({ host, status: 429, retryAfterMs: 5000 });
  const refusal = gate.check({ host, role: "metadata" });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 60_000);
});

test("a probe that is given back unsent lets the next request probe at once", async () => {
  const { time, fail, start, log, assertClean } = setUp();
  fail();
  const calls = ["a", "b"].map(name => start(name, { maxWaitMs: Number.POSITIVE_INFINITY }));
  await time.advance(60_000);
  ((await calls[0]) as Grant).giveBack();
  await time.advance(0);
  assert.deepEqual(log, ["a granted at 60000", "b granted at 60000"]);
  ((await calls[1]) as Grant).release();
  assertClean();
});

test("when an operator closes a circuit, waiting requests are granted at once", async () => {
  const { time, breakers, start, log, assertClean } = setUp();
  breakers.open(host, 300);
  const call = start("a", { maxWaitMs: 300_000 });
  await time.advance(1000);
  breakers.close(host);
  ((await call) as Grant).release();
  assert.deepEqual(log, ["a granted at 1000"]);
  assertClean();
});

test("an abort during a cooldown leaves no timer, permit or slot behind", async () => {
  const { gate, time, breakers, start, log, assertClean } = setUp();
  breakers.open(host, 300);
  const abort = new AbortController();
  const call = start("a", { maxWaitMs: Number.POSITIVE_INFINITY, signal: abort.signal });
  await time.advance(0);
  assert.equal(gate.waiting, 1);
  abort.abort(Object.assign(new Error("enough"), { name: "Enough" }));
  await call;
  assert.deepEqual(log, ["a Enough at 0"]);
  assertClean();
});

test("a host with an open circuit delays no other host, even in a shared role budget", async () => {
  const { time, fail, start, log } = setUp({
    groups: {
      pair: { members: ["a.example", "b.example"], metadata: { rates: "1/s", guard_ms: 0, max_delay_ms: 9000 } },
    },
  });
  ((await start("first", { host: "b.example" })) as Grant).release();
  start("a", { host: "a.example", maxWaitMs: Number.POSITIVE_INFINITY });
  start("b", { host: "b.example" });
  await time.advance(500);
  fail("a.example");
  await time.advance(2000);
  assert.deepEqual(log, ["first granted at 0", "b granted at 1000"]);
});

test("requests that wait for a circuit do not count in the estimate of a new request", async () => {
  const { time, fail, start, log } = setUp({
    groups: { pair: { members: ["a.example", "b.example"], metadata: { rates: "1/s", guard_ms: 0 } } },
  });
  fail("a.example");
  ((await start("first", { host: "b.example" })) as Grant).release();
  for (const name of ["x", "y", "z"]) start(name, { host: "a.example", maxWaitMs: Number.POSITIVE_INFINITY });
  start("second", { host: "b.example", maxWaitMs: 1500 });
  await time.advance(1000);
  assert.deepEqual(log, ["first granted at 0", "second granted at 1000"]);
});

test("a probe has a jitter, other calls do not", async () => {
  const { time, fail, start, answer } = setUp();
  assert.equal(((await start("a")) as Grant).jitterMs, 0);
  fail();
  await time.advance(60_000);
  const probe = (await start("b")) as Grant;
  assert.equal(probe.jitterMs, 75);
  answer(probe, 200);
});

test("a role budget that was forgotten during a cooldown is not used beside its replacement", async () => {
  const { gate, time, breakers, start, log } = setUp({
    defaults: { metadata: { rates: "1/s", guard_ms: 0, max_delay_ms: 9000 } },
  });
  breakers.open(host, 5);
  start("a", { maxWaitMs: Number.POSITIVE_INFINITY }).then(grant => (grant as Grant).release());
  for (let visit = 0; visit < 20; visit += 1)
    (gate.enter({ host: `h${visit}.example`, role: "metadata" }) as Grant).release();
  await time.advance(4999);
  breakers.close(host);
  start("b");
  await time.advance(1000);
  assert.deepEqual(log, ["a granted at 4999", "b granted at 5999"]);
});

test("a grant that ends without a report releases its permit", async () => {
  const { breakers, fail, time, start } = setUp();
  fail();
  await time.advance(60_000);
  const probe = (await start("a")) as Grant;
  assert.notEqual(breakers.check({ host }), undefined);
  probe.release();
  assert.equal(breakers.check({ host }), undefined);
});

test("a HEAD that is not counted waits for a cooldown like other requests, and is then granted", async () => {
  const metadata = { rates: "100/s", guard_ms: 0, max_delay_ms: 1000, count_head: false };
  const { time, start, answer, log, assertClean } = setUp({ defaults: { metadata } });
  answer((await start("a")) as Grant, 429, 800);
  const waiting = start("b", { method: "HEAD" });
  await time.advance(1000);
  assert.deepEqual(log, ["a granted at 0", "b granted at 800"]);
  ((await waiting) as Grant).release();
  assertClean();
});

test("a breaker listener that takes the last slot does not cause a second grant of it", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time });
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "99/s" } }, global: { max_inflight: 1 } }, "test");
  const gate = new Gate(limits, time, { breakers });
  let thief: Grant | undefined;
  const stop = breakers.listen(() => {
    stop();
    thief = gate.enter({ host: "b.example", role }) as Grant;
  });
  const entered = gate.enter({ host, role });
  assert.equal(gate.inFlight, 1);
  thief?.release();
  (await entered).release();
  assert.equal(gate.inFlight, 0);
});

test("a reload by a listener during a grant serves no request twice", async () => {
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "2/s", guard_ms: 0, max_delay_ms: 60_000 } } };
  let reloads = 0;
  const limiter = new RateLimiter(limits, {
    time,
    listener: event => {
      if (!("outcome" in event) || event.outcome !== "granted" || event.blocked_ms === 0) return;
      reloads += 1;
      limiter.reload(limits);
    },
  });
  const wentMs: number[] = [];
  for (let call = 0; call < 8; call += 1) limiter.acquire({ host }).then(() => wentMs.push(time.monotonicUs() / 1000));
  await time.advance(5000);
  assert.deepEqual(wentMs, [0, 0, 1000, 1000, 2000, 2000, 3000, 3000]);
  assert.equal(reloads, 6);
  assert.equal(limiter.snapshot().waiting, 0);
  assert.equal(limiter.snapshot().keys[0]?.acquired, 8);
});

test("a circuit that becomes half-open during the decision lets no request exceed the ceiling", async () => {
  const time = new FakeTime();
  const options = { defaults: { fail_max: 1, reset_timeout_s: 1 }, advanced: { rolling_window: { enabled: false } } };
  const breakers = new BreakerRegistry(options, { time });
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "99/s" } }, global: { max_inflight: 1 } }, "test");
  const gate = new Gate(limits, time, { breakers });
  breakers.onFailure({ host, status: 503 });
  const waiting = gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY });
  time.stepWall(1);
  await time.stall(999.5);
  const grants = [gate.enter({ host: "b.example", role })];
  await time.stall(10);
  assert.equal(gate.inFlight, 1);
  (await (grants[0] as Promise<Grant>)).release();
  (await waiting).release();
  assert.equal(gate.inFlight, 0);
});

test("a call that waits for a cooldown is refused when the cooldown is extended beyond its bound", async () => {
  const { gate, time, log, start } = setUp();
  const [first, second] = [gate.enter({ host, role }) as Grant, gate.enter({ host, role }) as Grant];
  const throttle = (grant: Grant, retryAfterMs: number) => {
    const outcome = outcomeOfResponse({ status: 429, retryAfterMs });
    grant.report({ outcome, status: 429, retryAfterMs });
    grant.release();
  };
  throttle(first, 1000);
  start("short", { maxWaitMs: 5000 });
  start("patient", { maxWaitMs: 100_000 });
  await time.advance(500);
  throttle(second, 60_000);
  await time.advance(0);
  assert.deepEqual(log, ["short BreakerOpenError at 500"]);
  await time.advance(61_000);
  assert.match(log[1] ?? "", /^patient granted at 60/);
});

test("a listener of limits that lapse around a reload cannot break the limit, and a call that it aborts is gone", async () => {
  const limits = { defaults: { metadata: { rates: "2/s", guard_ms: 0 } } };
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { keptKeys: 9 });
  const learning = gate.tryEnter({ host, role });
  learning?.written();
  learning?.recordResponse({ isThrottled: false, announced: [{ source: "ratelimit", limit: 1, windowUs: 1_000_000 }] });
  learning?.release();
  await time.advance(3_605_000);
  const other = { host: "other.example", role, maxWaitMs: Number.POSITIVE_INFINITY } as const;
  assert.ok(gate.tryEnter(other) && gate.tryEnter(other));
  const aborter = new AbortController();
  const aborted = Promise.resolve(gate.enter({ ...other, signal: aborter.signal }));
  void gate.enter(other);
  const granted: boolean[] = [];
  gate.listen(event => {
    if (event.event_type !== "limit_learned") return;
    granted.push(gate.tryEnter(other) !== undefined);
    aborter.abort();
  });
  gate.reload(limitPoliciesFrom(limits, "test"));
  assert.equal(gate.check({ host, role }), undefined);
  await assert.rejects(aborted, { name: "AbortError" });
  assert.deepEqual([granted, gate.waiting], [[false], 1]);
});
