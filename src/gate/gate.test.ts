import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerRegistry } from "../breaker/breaker-registry.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { BreakerOpenError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";

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
    const note = (what: string) => log.push(`${name} ${what} at ${time.monotonicUs() / 1000}`);
    const enter = async () => gate.enter({ host, role: "metadata", ...request });
    return enter().then(
      grant => {
        note("went");
        return grant;
      },
      error => {
        note(error.name);
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
  /** Nothing waits, nothing is armed, no permit and no slot is out. */
  const assertClean = () => {
    assert.equal(gate.waiting, 0);
    assert.equal(gate.inFlight, 0);
    assert.equal(time.armedTimers, 0);
  };
  return { time, breakers, gate, log, start, answer, fail, assertClean };
}

test("a call to a host that is cut off is refused at once and charges no window", () => {
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
  for (const lane of gate.roleBudgets())
    assert.deepEqual([lane.log.written, lane.log.pending, lane.inFlight], [0, 0, 0]);
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

test("a cooldown that ends within the bound is waited for", async () => {
  const { time, start, answer, log, assertClean } = setUp();
  answer((await start("a")) as Grant, 429, 800);
  const waiting = start("b");
  await start("c", { maxWaitMs: 700 });
  await time.advance(1000);
  assert.deepEqual(log, ["a went at 0", "c BreakerOpenError at 0", "b went at 800"]);
  ((await waiting) as Grant).release();
  assertClean();
});

test("a cooldown set while somebody waits holds it, or refuses it when it would be too long", async () => {
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
  assert.deepEqual(log, ["first went at 0", "hasty BreakerOpenError at 1000", "patient went at 60100"]);
  ((await patient) as Grant).release();
  await hasty;
  assertClean();
});

test("after an open time one probe goes, the others wait for what it says", async () => {
  const { time, fail, start, answer, log, assertClean } = setUp();
  fail();
  const calls = ["a", "b", "c"].map(name => start(name, { maxWaitMs: Number.POSITIVE_INFINITY }));
  await time.advance(60_000);
  assert.deepEqual(log, ["a went at 60000"]);
  const impatient = await start("d");
  assert.ok(impatient instanceof BreakerOpenError);
  await time.advance(300);
  answer((await calls[0]) as Grant, 200);
  await time.advance(0);
  assert.deepEqual(log.slice(2), ["b went at 60300", "c went at 60300"]);
  for (const call of calls) ((await call) as Grant).release();
  assertClean();
});

test("a probe that fails keeps those who may wait, and refuses those whose bound it exceeds", async () => {
  const { time, fail, start, answer, log, assertClean } = setUp();
  fail();
  const probe = start("probe", { maxWaitMs: 60_000 });
  const patient = start("patient", { maxWaitMs: Number.POSITIVE_INFINITY });
  const bounded = start("bounded", { maxWaitMs: 61_000 });
  await time.advance(60_000);
  answer((await probe) as Grant, 503);
  await time.advance(60_000);
  assert.deepEqual(log, ["probe went at 60000", "bounded BreakerOpenError at 60000", "patient went at 120000"]);
  await bounded;
  ((await patient) as Grant).release();
  assertClean();
});

test("when a probe fails, those who wait go by the new open time and not by the lease of the probe", async () => {
  const time = new FakeTime();
  const options = {
    defaults: { fail_max: 1, reset_timeout_s: 5 },
    advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
  };
  const breakers = new BreakerRegistry(options, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates: "99/s" } } }, "test"), time, { breakers });
  breakers.onFailure({ host, status: 503 });
  const went: number[] = [];
  for (let call = 0; call < 2; call += 1) {
    void (gate.enter({ host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY }) as Promise<Grant>).then(grant => {
      went.push(time.monotonicUs() / 1000);
      if (went.length === 1) grant.report({ outcome: outcomeOfResponse({ status: 503 }), status: 503 });
      grant.release();
    });
  }
  await time.advance(20_000);
  assert.deepEqual(went, [5000, 10_000]);
});

test("a denial tells the later of a cooldown and an open circuit", () => {
  const { breakers, gate } = setUp();
  for (let call = 0; call < 2; call += 1) breakers.onFailure({ host, status: 503 });
  breakers.onFailure({ host, status: 429, retryAfterS: 5 });
  const refusal = gate.check({ host, role: "metadata" });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 60_000);
});

test("a probe that is given back unsent lets the next one try at once", async () => {
  const { time, fail, start, log, assertClean } = setUp();
  fail();
  const calls = ["a", "b"].map(name => start(name, { maxWaitMs: Number.POSITIVE_INFINITY }));
  await time.advance(60_000);
  ((await calls[0]) as Grant).giveBack();
  await time.advance(0);
  assert.deepEqual(log, ["a went at 60000", "b went at 60000"]);
  ((await calls[1]) as Grant).release();
  assertClean();
});

test("an operator who closes a circuit lets those who wait for it through at once", async () => {
  const { time, breakers, start, log, assertClean } = setUp();
  breakers.open(host, 300);
  const call = start("a", { maxWaitMs: 300_000 });
  await time.advance(1000);
  breakers.close(host);
  ((await call) as Grant).release();
  assert.deepEqual(log, ["a went at 1000"]);
  assertClean();
});

test("an abort while a host cools down leaves nothing behind", async () => {
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

test("a host that is cut off is in nobody's way, even where it shares a lane", async () => {
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
  assert.deepEqual(log, ["first went at 0", "b went at 1000"]);
});

test("those whose host is cut off are not ahead of anybody when a newcomer is judged", async () => {
  const { time, fail, start, log } = setUp({
    groups: { pair: { members: ["a.example", "b.example"], metadata: { rates: "1/s", guard_ms: 0 } } },
  });
  fail("a.example");
  ((await start("first", { host: "b.example" })) as Grant).release();
  for (const name of ["x", "y", "z"]) start(name, { host: "a.example", maxWaitMs: Number.POSITIVE_INFINITY });
  start("second", { host: "b.example", maxWaitMs: 1500 });
  await time.advance(1000);
  assert.deepEqual(log, ["first went at 0", "second went at 1000"]);
});

test("a probe is told to wait a moment, other calls are not", async () => {
  const { time, fail, start, answer } = setUp();
  assert.equal(((await start("a")) as Grant).jitterMs, 0);
  fail();
  await time.advance(60_000);
  const probe = (await start("b")) as Grant;
  assert.equal(probe.jitterMs, 75);
  answer(probe, 200);
});

test("a lane that was forgotten while its host cooled down is not used beside a new one", async () => {
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
  assert.deepEqual(log, ["a went at 4999", "b went at 5999"]);
});

test("a grant that ends without a report gives its permit back", async () => {
  const { breakers, fail, time, start } = setUp();
  fail();
  await time.advance(60_000);
  const probe = (await start("a")) as Grant;
  assert.notEqual(breakers.check({ host }), undefined);
  probe.release();
  assert.equal(breakers.check({ host }), undefined);
});

test("a HEAD that costs no unit waits for a cooldown like the others, and goes", async () => {
  const metadata = { rates: "100/s", guard_ms: 0, max_delay_ms: 1000, count_head: false };
  const { time, start, answer, log, assertClean } = setUp({ defaults: { metadata } });
  answer((await start("a")) as Grant, 429, 800);
  const waiting = start("b", { method: "HEAD" });
  await time.advance(1000);
  assert.deepEqual(log, ["a went at 0", "b went at 800"]);
  ((await waiting) as Grant).release();
  assertClean();
});
