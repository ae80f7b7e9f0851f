import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { burst, hasKey, host, limiterOf, metadataLimits } from "../../test/limiter/kit.ts";
import { RateLimiter } from "../gate/rate-limiter.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { FakeTime } from "../testing/fake-time.ts";

const wide = Object.fromEntries(ROLES.map(role => [role, { rates: "99/s", guard_ms: 0 }]));

test("a total that a reload adds counts what its roles have sent", async () => {
  const { limiter, time } = limiterOf({ defaults: wide });
  for (const role of ROLES) assert.ok(limiter.tryAcquire({ host, role }));
  await time.advance(100);
  limiter.reload({ defaults: wide, hosts: { [host]: { total: { rates: "3/s", guard_ms: 0 } } } });
  assert.equal(limiter.tryAcquire({ host }), undefined);
  assert.equal(limiter.check({ host })?.retryAfterMs, 900);
});

test("a host that moves into a service brings what it has sent, and takes along what the service has sent", async () => {
  const { limiter, time } = limiterOf({ defaults: wide });
  for (const name of [host, "mirror.example.org"]) assert.equal(burst(limiter, 2, name), 2);
  await time.advance(100);
  const members = [host, "mirror.example.org"];
  limiter.reload({ defaults: wide, services: { both: { members, metadata: { rates: "5/s", guard_ms: 0 } } } });
  assert.equal(burst(limiter, 5), 1, "four were sent before");
  await time.advance(100);
  limiter.reload({ defaults: wide, hosts: { [host]: { metadata: { rates: "6/s", guard_ms: 0 } } } });
  assert.equal(burst(limiter, 6), 1, "the service has sent five");
});

test("a key that was forgotten counts in a window that a reload adds", async () => {
  const { limiter, time, visit } = limiterOf(metadataLimits({ rates: "2/s" }));
  assert.equal(burst(limiter, 2), 2);
  await time.advance(10_000);
  visit(50);
  limiter.reload(metadataLimits({ rates: ["2/s", "3/m"] }));
  assert.equal(burst(limiter, 2), 1);
});

test("a key that was forgotten, and used again or not, counts once in a total that a later reload adds", async () => {
  const limits = metadataLimits({ rates: "10/s" });
  for (const [reloads, uses] of [
    [0, 1],
    [1, 0],
    [3, 1],
  ] as const) {
    const { limiter, time, visit } = limiterOf(limits);
    assert.equal(burst(limiter, 10), 10);
    await time.advance(5000);
    visit(50);
    assert.equal(burst(limiter, uses), uses);
    for (let reload = 0; reload < reloads; reload += 1) limiter.reload(limits);
    limiter.reload({ ...metadataLimits({ rates: "99/s" }), hosts: { [host]: { total: { rates: "50/HOUR" } } } });
    assert.equal(burst(limiter, 50), 40 - uses);
  }
});

test("a total that is removed and added again counts its forgotten keys once", async () => {
  const defaults = metadataLimits({ rates: "99/s" });
  const withTotal = { ...defaults, hosts: { [host]: { total: { rates: "30/HOUR" } } } };
  const { limiter, time, visit } = limiterOf(withTotal);
  assert.equal(burst(limiter, 10), 10);
  await time.advance(5000);
  visit(50);
  limiter.reload(defaults);
  limiter.reload(withTotal);
  assert.equal(burst(limiter, 30), 20);
});

test("a reload does not bring back keys that were forgotten, unless another budget counts them", async () => {
  const limits = metadataLimits({ rates: "10/s" });
  const { limiter, time, visit } = limiterOf(limits);
  assert.equal(burst(limiter, 10), 10);
  await time.advance(5000);
  visit(50);
  limiter.reload(limits);
  assert.equal(hasKey(limiter), false);
  limiter.reload({ ...limits, hosts: { [host]: { total: { rates: "15/HOUR" } } } });
  assert.equal(burst(limiter, 10), 5);
});

const HOSTS = ["a.example", "b.example", "c.example"];
const rates = fc.constantFrom("1/100ms", "2/100ms", "3/300ms", "2/100ms+5/s", "4/s", "9/s");
const limits = (rate: fc.Arbitrary<string>) => rate.map(one => ({ rates: one, guard_ms: 0 }));
const policy: fc.Arbitrary<RatelimitsOptions> = fc
  .record({
    defaults: fc.record({ metadata: limits(rates), landing: limits(rates), artifact: limits(rates) }),
    totals: fc.dictionary(fc.constantFrom(...HOSTS), limits(rates), { maxKeys: 2 }),
    members: fc.subarray(HOSTS),
    service: fc.record({ total: limits(rates), metadata: limits(rates) }, { requiredKeys: [] }),
  })
  .map(({ defaults, totals, members, service }) => ({
    defaults,
    hosts: Object.fromEntries(Object.entries(totals).map(([name, total]) => [name, { total }])),
    ...(members.length > 0 && { services: { some: { members, ...service } } }),
  }));
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ host: fc.constantFrom(...HOSTS), role: fc.constantFrom(...ROLES) }) },
  { weight: 2, arbitrary: fc.record({ advanceMs: fc.constantFrom(1, 40, 100, 350, 1100) }) },
  { weight: 1, arbitrary: fc.record({ reload: policy }) },
);

interface Sent {
  readonly host: string;
  readonly role: Role;
  readonly us: number;
}

/** Counted independently: the windows that are exceeded by the sends, each routed by the policy of now. */
function exceeded(policies: LimitPolicies, sent: readonly Sent[], last: Sent): string[] {
  const budgetsOf = ({ host: name, role }: Sent) => {
    const route = policies.route(name, role);
    return [{ name: `${route.name} ${role}`, policy: route.roleBudget }, ...route.above];
  };
  return budgetsOf(last).flatMap(({ name, policy: { rates: windows } }) =>
    windows
      .filter(({ limit, windowUs }) => {
        const inside = sent.filter(one => one.us > last.us - windowUs && budgetsOf(one).some(at => at.name === name));
        return inside.length > limit;
      })
      .map(({ limit, windowUs }) => `${name} ${limit}/${windowUs}us`),
  );
}

test("no reload lets more requests through than the windows allow that apply to them now", async () => {
  await fc.assert(
    fc.asyncProperty(policy, fc.array(step, { maxLength: 60, size: "max" }), async (first, steps) => {
      const time = new FakeTime();
      const limiter = new RateLimiter(first, { time });
      let policies = limitPoliciesFrom(first, "test");
      const sent: Sent[] = [];
      for (const one of steps) {
        if ("advanceMs" in one) await time.advance(one.advanceMs);
        else if ("reload" in one) {
          limiter.reload(one.reload);
          policies = limitPoliciesFrom(one.reload, "test");
        } else if (limiter.tryAcquire(one) !== undefined) {
          const last = { ...one, us: time.monotonicUs() };
          sent.push(last);
          assert.deepEqual(exceeded(policies, sent, last), []);
        }
      }
    }),
    { numRuns: 600 },
  );
});
