import assert from "node:assert/strict";
import { test } from "node:test";
import { host, role, roleLimits } from "../../test/limiter/kit.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";
import { breakersOf } from "./registry-breakers.ts";

for (const source of ["limiter", "breakers"] as const) {
  test(`a request that a listener of the ${source} aborts while it is granted keeps no slot`, async () => {
    const time = new FakeTime();
    const limits = limitPoliciesFrom(roleLimits({ rates: "99/s", max_concurrent: 1 }), "test");
    const abort = new AbortController();
    let isArmed = false;
    const listener = () => {
      if (isArmed) abort.abort();
    };
    const breakers = new BreakerRegistry({}, { time });
    const gate = new Gate(limits, time, { breakers });
    const held = (await gate.enter({ host, role })) as Grant;
    if (source === "limiter") gate.listen(listener);
    else breakers.listen(listener);
    const aborted = (gate.enter({ host, role, signal: abort.signal }) as Promise<Grant>).catch(error => error.name);
    const next = gate.enter({ host, role }) as Promise<Grant>;
    isArmed = true;
    held.release();
    await time.advance(0);
    assert.equal(await aborted, "AbortError");
    (await next).release();
    assert.equal(gate.inFlight, 0);
    assert.equal(gate.waiting, 0);
  });
}

test("a request whose signal a listener aborts while it enters is not queued", async () => {
  const time = new FakeTime();
  const abort = new AbortController();
  const options = { defaults: { fail_max: 1, reset_timeout_s: 5, roles: {} } };
  const breakers = new BreakerRegistry(options, { time, random: () => 0 });
  breakers.onFailure({ host, status: 500 });
  breakers.listen(({ event_type }) => {
    if (event_type === "breaker_before_call") abort.abort();
  });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  const entered = (async () => gate.enter({ host, role, signal: abort.signal, maxWaitMs: 60_000 }))();
  const rejected = assert.rejects(entered, { name: "AbortError" });
  await time.advance(60_000);
  await rejected;
  assert.equal(gate.waiting, 0);
});

test("a host that asks for a pause makes the breakers check the waiting calls of this host only", async () => {
  const time = new FakeTime();
  const registry = new BreakerRegistry({}, { time, random: () => 0.5 });
  const limits = { global: { max_inflight: 1 }, defaults: { metadata: { rates: "10/s", max_delay_ms: 600_000 } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { breakers: registry });
  const held = (await gate.enter({ host: "first.example", role })) as Grant;
  const refused: string[] = [];
  for (let n = 0; n < 100; n += 1)
    void (async () => gate.enter({ host: `h${n}.example`, role, maxWaitMs: 1_000 }))().catch(({ name }) =>
      refused.push(`${n} ${name}`),
    );
  const breakers = breakersOf(registry);
  const { check } = breakers;
  let checks = 0;
  breakers.check = (...request) => {
    checks += 1;
    return check.apply(breakers, request);
  };
  registry.onFailure({ host: "h7.example", status: 429, retryAfterMs: 60_000 });
  await time.advance(0);
  assert.deepEqual(refused, ["7 BreakerOpenError"]);
  assert.equal(checks, 1);
  await time.advance(1_000);
  held.release();
});
