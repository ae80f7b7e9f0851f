import assert from "node:assert/strict";
import { test } from "node:test";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { partitionName } from "../policy/partition-name.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { LimiterEmitter } from "./limiter-emitter.ts";
import { ReloadHolds } from "./reload-holds.ts";
import { RoleBudget } from "./role-budget.ts";
import { RoleBudgets } from "./role-budgets.ts";

const PARTITIONED = { rates: "9/HOUR", guard_ms: 0, per: "partition" } as const;
const serviceOf = (...members: readonly string[]): RatelimitsOptions => ({
  services: { whole: { members, metadata: PARTITIONED } },
});

/** Limits that count how often the places of a budget are looked up. */
function counted(options: RatelimitsOptions, lookups: { count: number }): LimitPolicies {
  const limits = limitPoliciesFrom(options, "test");
  return new Proxy(limits, {
    get(target, key) {
      if (key === "placesOf") lookups.count += 1;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const NAMES = Array.from({ length: 100 }, (_, n) => partitionName("service whole", `${n}`));

test("a reload compares the places of a service once for all its partitions", () => {
  const lookups = { count: 0 };
  const before = counted(serviceOf("a.example"), lookups);
  const now = counted(serviceOf("a.example", "b.example"), lookups);
  const holds = new ReloadHolds();
  holds.reloaded(before, 0);
  for (const name of NAMES) {
    const { roleBudget: policy } = now.routeByName(name, "metadata") ?? assert.fail();
    const roleBudget = new RoleBudget(name, "metadata", policy, undefined);
    holds.holdRoleBudget(roleBudget, now, 0);
    assert.equal(roleBudget.holdUntilUs, 1_600_000);
  }
  assert.equal(lookups.count, 2);
});

test("after a second reload, the places are compared with those of each earlier limits again", () => {
  const both = limitPoliciesFrom(serviceOf("a.example", "b.example"), "test");
  const one = limitPoliciesFrom(serviceOf("b.example"), "test");
  const name = NAMES[0] ?? assert.fail();
  const holdOf = (holds: ReloadHolds, now: LimitPolicies, nowUs: number) => {
    const { roleBudget: policy } = now.routeByName(name, "metadata") ?? assert.fail();
    const roleBudget = new RoleBudget(name, "metadata", policy, undefined);
    holds.holdRoleBudget(roleBudget, now, nowUs);
    return roleBudget.holdUntilUs;
  };
  const holds = new ReloadHolds();
  holds.reloaded(one, 0);
  assert.equal(holdOf(holds, one, 0), 0);
  holds.reloaded(one, 1000);
  assert.equal(holdOf(holds, both, 1000), 1_601_000);
  assert.equal(holdOf(holds, both, 1_601_000), 0, "all processes have had the time to report");
});

test("when the store is lost or back, no places are compared, because no request changes its budget", async () => {
  const lookups = { count: 0 };
  const time = new FakeTime();
  const budgets = new RoleBudgets(counted(serviceOf("a.example", "b.example"), lookups), time, new LimiterEmitter());
  budgets.isShared = true;
  const budget = (partition: string) => budgets.of({ host: "a.example", role: "metadata", partition, maxWaitMs: 0 });
  for (let n = 0; n < 50; n += 1) budget(`${n}`).write({ units: 1, costs: undefined }, 0);
  lookups.count = 0;
  budgets.share(3);
  assert.deepEqual([budget("7").windows[0]?.limit, budget("7").log.written], [3, 1]);
  budgets.share(1);
  assert.equal(budget("7").windows[0]?.limit, 9);
  assert.equal(lookups.count, 0);
});
