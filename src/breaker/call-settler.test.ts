import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "../core/breaker/call-result.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";

const host = "a.example";
const THROTTLED: CallResult = { outcome: { kind: "failure", cause: "status", throttled: true }, status: 429 };
const FAILED: CallResult = { outcome: { kind: "failure", cause: "status", throttled: false }, status: 500 };

function setUp(options: BreakersOptions = {}) {
  const time = new FakeTime();
  const registry = new BreakerRegistry(options, { time, random: () => 0 });
  /** So many calls in flight together, which all end with the same result. */
  const burst = (calls: number, result: CallResult = THROTTLED) => {
    const permits = Array.from({ length: calls }, () => registry.allow({ host }));
    for (const permit of permits) permit.report(result);
  };
  const status = () => {
    const { state, windowFailures, roles } = registry.state(host);
    return { state, windowFailures, failures: roles[0]?.failures };
  };
  return { time, registry, burst, status };
}

test("any number of throttles of one burst are one failure for the circuit and for the rolling window", () => {
  const { burst, status } = setUp();
  burst(50);
  assert.deepEqual(status(), { state: "closed", windowFailures: 1, failures: 1 });
});

test("throttles that persist over fail_max bursts open the circuit", () => {
  const { burst, status } = setUp({ advanced: { rolling_window: { enabled: false } } });
  for (let event = 1; event < 5; event += 1) {
    burst(10);
    assert.deepEqual(status(), { state: "closed", windowFailures: 0, failures: event });
  }
  burst(10);
  assert.equal(status().state, "open");
});

test("failures that are not throttles count one by one, also when they were in flight together", () => {
  const { burst, status } = setUp();
  burst(5, FAILED);
  assert.equal(status().state, "open");
});

test("a burst of throttles does not complete a series of failures", () => {
  const { burst, status } = setUp({ advanced: { rolling_window: { enabled: false } } });
  burst(4, FAILED);
  burst(10);
  assert.deepEqual(status(), { state: "closed", windowFailures: 0, failures: 4 });
});

test("throttles of one burst are one event for both roles of a host", () => {
  const { registry, status } = setUp();
  const permits = (["metadata", "landing"] as const).map(role => registry.allow({ host, role }));
  for (const permit of permits) permit.report(THROTTLED);
  assert.equal(status().windowFailures, 1);
});

test("the long Retry-Afters of one burst raise the reset timeout once at most, like a single one", async () => {
  const { time, registry, burst } = setUp({
    defaults: { roles: { metadata: { fail_max: 3, reset_timeout_s: 60 } } },
    advanced: { ramp_up: { enabled: false } },
  });
  const slow = { ...THROTTLED, retryAfterMs: 600_000 };
  const openForMs = () => {
    burst(3, FAILED);
    return registry.remainingMs(host);
  };
  burst(5, slow);
  await time.advance(600_000);
  assert.equal(openForMs(), 60_000);
  registry.close(host);
  for (let event = 0; event < 2; event += 1) {
    burst(5, slow);
    await time.advance(600_000);
  }
  assert.equal(openForMs(), 600_000);
});

test("throttles reported without a permit count one by one, because their requests are unknown", () => {
  const { registry, status } = setUp({ advanced: { rolling_window: { enabled: false } } });
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, status: 429 });
  assert.equal(status().state, "open");
});

test("a result without a permit ends the oldest trial call, also a throttle of a burst that was counted", () => {
  const { time, registry } = setUp({ advanced: { rolling_window: { enabled: false } } });
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, status: 500 });
  time.tick(60_000);
  assert.ok(registry.allow({ host }).isAllowed);
  assert.equal(registry.check({ host })?.state, "half_open");
  registry.allow({ host, role: "landing" }).report({ ...THROTTLED, retryAfterMs: 1000 });
  registry.onFailure({ host, status: 429, retryAfterMs: 1000 });
  time.tick(1000);
  assert.equal(registry.check({ host }), undefined);
});

test("throttles of several hosts that were in flight together are one event for their resolver", () => {
  const { registry } = setUp({ resolvers: { index: { fail_max: 2, reset_timeout_s: 45 } } });
  const burst = () => {
    const permits = ["a", "b", "c"].map(name => registry.allow({ host: `${name}.example`, resolver: "index" }));
    for (const permit of permits) permit.report(THROTTLED);
  };
  burst();
  assert.equal(registry.resolverState("index"), "closed");
  burst();
  assert.equal(registry.resolverState("index"), "open");
});
