import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { BreakerOpenError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";

const host = "api.example.org";
const role = "metadata";
const forever = Number.POSITIVE_INFINITY;

const limits = (rates: string, more: RatelimitsOptions = {}): RatelimitsOptions => ({
  defaults: { metadata: { rates, guard_ms: 0, max_delay_ms: 1000 } },
  ...more,
});

function setUp(options: RatelimitsOptions) {
  const time = new FakeTime();
  const breakers = new BreakerRegistry(
    {
      defaults: { fail_max: 1, reset_timeout_s: 60 },
      advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
    },
    { time, random: () => 0 },
  );
  const gate = new Gate(limitPoliciesFrom(options, "test"), time, { breakers });
  const log: string[] = [];
  const start = (name: string, request: Partial<EntryRequest> = {}) => {
    const enter = async () => gate.enter({ host, role, ...request });
    return enter().then(
      grant => {
        log.push(`${name} granted at ${time.monotonicUs() / 1000}`);
        return grant;
      },
      (error: Error) => {
        log.push(`${name} ${error.name} at ${time.monotonicUs() / 1000}`);
        return error;
      },
    );
  };
  const answer = (grant: Grant, status: number) => {
    grant.report({ outcome: outcomeOfResponse({ status }), status });
    grant.release();
  };
  const take = (request: Partial<EntryRequest> = {}) => gate.enter({ host, role, maxWaitMs: 0, ...request }) as Grant;
  return { time, breakers, gate, log, start, answer, take };
}

describe("maxBreakerWaitMs", () => {
  test("bounds the wait for an open circuit, while the wait for a rate has no bound", async () => {
    const { time, breakers, take, start, log } = setUp(limits("1/100s"));
    take().release();
    start("patient", { maxWaitMs: forever, maxBreakerWaitMs: 5000 });
    breakers.open("other.example", 5);
    start("short outage", { host: "other.example", maxWaitMs: forever, maxBreakerWaitMs: 5000 });
    breakers.open("third.example", 5.001);
    start("long outage", { host: "third.example", maxWaitMs: forever, maxBreakerWaitMs: 5000 });
    await time.advance(100_000);
    assert.deepEqual(log, [
      "long outage BreakerOpenError at 0",
      "short outage granted at 5000",
      "patient granted at 100000",
    ]);
  });

  test("counts from the first denial, not from the arrival of the call", async () => {
    const { time, breakers, take, start, log } = setUp(limits("1/10s"));
    take().release();
    start("a", { maxWaitMs: forever, maxBreakerWaitMs: 3000 });
    start("b", { maxWaitMs: forever, maxBreakerWaitMs: 2999 });
    await time.advance(9000);
    breakers.open(host, 4);
    await time.advance(30_000);
    assert.deepEqual(log, ["b BreakerOpenError at 10000", "a granted at 13000"]);
  });

  test("applies to a half-open circuit too, by the end of the lease of the probe in flight", async () => {
    const { time, breakers, start, answer, log } = setUp(limits("9/s"));
    breakers.onFailure({ host, status: 503 });
    await time.advance(60_000);
    const probe = (await start("probe", { timeoutMs: 10_000 })) as Grant;
    const leaseMs = 10_000 + 5000;
    await start("hasty", { maxWaitMs: forever, maxBreakerWaitMs: leaseMs - 1 });
    start("patient", { maxWaitMs: forever, maxBreakerWaitMs: leaseMs });
    await start("bounded", { maxWaitMs: leaseMs - 1, maxBreakerWaitMs: forever });
    await time.advance(100);
    answer(probe, 200);
    await time.advance(0);
    assert.deepEqual(log, [
      "probe granted at 60000",
      "hasty BreakerOpenError at 60000",
      "bounded BreakerOpenError at 60000",
      "patient granted at 60100",
    ]);
  });

  test("never extends the wait beyond maxWaitMs or max_delay_ms", () => {
    const { breakers, gate } = setUp(limits("9/s"));
    breakers.open(host, 5);
    assert.throws(() => gate.enter({ host, role, maxWaitMs: 4000, maxBreakerWaitMs: forever }), BreakerOpenError);
    assert.throws(() => gate.enter({ host, role, maxBreakerWaitMs: forever }), BreakerOpenError);
    assert.throws(() => gate.enter({ host, role, maxWaitMs: forever, maxBreakerWaitMs: 0 }), BreakerOpenError);
    assert.equal(gate.waiting, 0);
  });

  test("must be at least 0", () => {
    const { gate } = setUp(limits("9/s"));
    for (const maxBreakerWaitMs of [-1, Number.NaN]) {
      assert.throws(
        () => gate.enter({ host, role, maxBreakerWaitMs }),
        new RangeError(`maxBreakerWaitMs must be at least 0, got ${maxBreakerWaitMs}`),
      );
    }
  });
});

describe("service", () => {
  const groups = (rates: string): RatelimitsOptions =>
    limits("9/s", {
      groups: {
        ols: { members: ["ols.example"], metadata: { rates, guard_ms: 0 }, total: { rates: "4/s", guard_ms: 0 } },
      },
    });

  test("charges the role budgets of its service instead of those of its host", () => {
    const { gate, take } = setUp(groups("2/s"));
    const grant = take({ service: "ols" });
    assert.equal(grant.host, "service ols");
    take({ host: "ols.example" });
    const refusal = gate.check({ host, role, service: "ols" });
    assert.ok(refusal);
    assert.deepEqual(refusal.constraint, { kind: "window", owner: "service ols", limit: "2/SECOND" });
    assert.ok(gate.tryEnter({ host, role }));
  });

  test("charges the total of the service too", () => {
    const { gate, take } = setUp(groups("9/s"));
    for (let call = 0; call < 4; call += 1) take({ service: "ols", host: `h${call}.example` });
    assert.equal(gate.tryEnter({ host, role, service: "ols" }), undefined);
  });

  test("uses the breaker of the host", async () => {
    const { breakers, gate, take } = setUp(groups("9/s"));
    take({ service: "ols" }).report({ outcome: outcomeOfResponse({ status: 503 }), status: 503 });
    assert.equal(breakers.state(host).state, "open");
    assert.equal(breakers.state("ols.example").state, "closed");
    assert.throws(() => gate.enter({ host, role, service: "ols" }), BreakerOpenError);
    take({ host: "ols.example" });
  });

  test("with per_host has a budget for each host, below the host's own total", () => {
    const { gate, take } = setUp(
      limits("9/s", {
        hosts: { "small.example": { total: { rates: "1/s", guard_ms: 0 } } },
        groups: { ols: { per_host: true, total: { rates: "2/s", guard_ms: 0 } } },
      }),
    );
    const request = (at: string, asRole: typeof role | "artifact" = role) => ({
      host: at,
      role: asRole,
      service: "ols",
    });
    assert.equal(take({ service: "ols", host: "a.example" }).host, "service ols:a.example");
    assert.ok(gate.tryEnter(request("a.example", "artifact")));
    const refusal = gate.check(request("a.example"));
    assert.ok(refusal);
    assert.deepEqual(refusal.constraint, { kind: "window", owner: "service ols:a.example", limit: "2/SECOND" });
    assert.ok(gate.tryEnter(request("b.example")));

    assert.ok(gate.tryEnter(request("small.example")));
    const below = gate.check(request("small.example"));
    assert.ok(below);
    assert.equal(below.constraint.owner, "small.example");
    assert.throws(
      () => setUp(limits("9/s", { groups: { ols: { per_host: true, members: ["a.example"] } } })),
      /services\.ols\.members: members is not allowed together with per_host/,
    );
  });

  test("that the policy does not name is an error with its name", () => {
    const { gate } = setUp(groups("9/s"));
    for (const service of ["bioportal", "", "service ols", host])
      assert.throws(
        () => gate.tryEnter({ host, role, service }),
        new RangeError(`unknown service ${JSON.stringify(service)}: the policy has no service of that name`),
      );
    assert.throws(() => gate.enter({ host, role, service: "bioportal" }), RangeError);
    assert.throws(() => gate.enter({ host, role: "x" as "metadata", service: "ols" }), /unknown role/);
  });

  test("keeps its waiting requests when the policy is reloaded", async () => {
    const { time, gate, take, start, log } = setUp(groups("1/s"));
    take({ service: "ols" }).release();
    start("a", { service: "ols", maxWaitMs: forever, stamp: "granted" });
    start("b", { service: "ols", maxWaitMs: forever, stamp: "granted" });
    gate.reload(limitPoliciesFrom(groups("1/2s"), "test"));
    await time.advance(5000);
    assert.deepEqual(log, ["a granted at 2000", "b granted at 4000"]);
  });

  test("gets its requests back after a circuit of their host was open", async () => {
    const { time, breakers, take, start, log } = setUp(groups("1/s"));
    breakers.open(host, 5);
    start("a", { service: "ols", maxWaitMs: forever });
    await time.advance(4500);
    take({ host: "ols.example" }).release();
    await time.advance(5000);
    assert.deepEqual(log, ["a granted at 5500"]);
  });

  test("that a new policy no longer names refuses its waiting requests", async () => {
    const { time, gate, take, start, log } = setUp(groups("1/s"));
    take({ service: "ols" }).release();
    const waiting = start("a", { service: "ols", maxWaitMs: forever });
    gate.reload(limitPoliciesFrom(limits("9/s"), "test"));
    await time.advance(0);
    assert.deepEqual(log, ["a RangeError at 0"]);
    assert.equal(((await waiting) as Error).message, 'unknown service "ols": the policy has no service of that name');
    assert.equal(gate.waiting, 0);
    assert.equal(time.armedTimers, 0);
  });
});
