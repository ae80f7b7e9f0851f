import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf } from "../../test/limiter/kit.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { RoleBudget } from "./role-budget.ts";
import { TotalBudgets } from "./total-budgets.ts";

const perHost = (total: string) => ({
  services: {
    s: { per_host: true, metadata: { rates: "9/SECOND", guard_ms: 0 }, total: { rates: total, guard_ms: 0 } },
  },
});

/** The totals of a service with `per_host`, and role budgets below them. */
class Totals {
  readonly time = new FakeTime();
  readonly #limits = limitPoliciesFrom(perHost("5/SECOND"), "test");
  readonly totals = new TotalBudgets(this.time, () => undefined);

  add(host: string): RoleBudget {
    const route = this.#limits.serviceRoute("s", host, "metadata");
    assert.ok(route);
    const roleBudget = new RoleBudget(
      route.name,
      "metadata",
      route.roleBudget,
      this.totals.of(route, this.#limits.aimd),
    );
    this.totals.joined(roleBudget);
    return roleBudget;
  }

  has(host: string): boolean {
    return this.totals.names.includes(`service s:${host}`);
  }

  /** Each new total checks two others. */
  addOthers(): void {
    for (let n = 0; n < 3; n += 1) this.add(`other${n}-${this.time.monotonicUs()}.example`);
  }
}

test("a total is evicted when it behaves like a new one and has no role budget", async () => {
  const kit = new Totals();
  const roleBudget = kit.add("a.example");
  roleBudget.above?.write({ units: 1, costs: undefined }, 0);
  kit.totals.left(roleBudget);
  kit.addOthers();
  assert.equal(kit.has("a.example"), true, "its unit still counts");
  await kit.time.advance(1000);
  kit.addOthers();
  assert.equal(kit.has("a.example"), false);
});

test("a total is kept while it has a role budget, a slot or a request that is not written", async () => {
  for (const use of [
    (kit: Totals) => kit.add("a.example"),
    (kit: Totals) => {
      const roleBudget = kit.add("a.example");
      roleBudget.above?.reserve({ units: 1, costs: undefined });
      kit.totals.left(roleBudget);
    },
    (kit: Totals) => {
      const roleBudget = kit.add("a.example");
      if (roleBudget.above) roleBudget.above.inFlight += 1;
      kit.totals.left(roleBudget);
    },
  ]) {
    const kit = new Totals();
    use(kit);
    await kit.time.advance(5000);
    kit.addOthers();
    assert.equal(kit.has("a.example"), true);
  }
});

test("a longer total that a reload sets counts what was sent before the total was evicted", async () => {
  const { gate, time } = gateOf(perHost("5/SECOND"));
  const burst = (host: string) => {
    let granted = 0;
    while (gate.tryEnter({ host, role: "metadata", service: "s", stamp: "granted" }) !== undefined) granted += 1;
    return granted;
  };
  assert.equal(burst("a.example"), 5);
  for (let n = 0; n < 20; n += 1) {
    await time.advance(1000);
    burst(`h${n}.example`);
  }
  gate.reload(limitPoliciesFrom(perHost("7/HOUR"), "test"));
  assert.equal(burst("a.example"), 2);
});

test("a total that is evicted, removed by a reload and added again counts its units once", async () => {
  const metadata = { rates: "9/SECOND", guard_ms: 0 };
  const limits = (rates?: string) => ({
    defaults: { metadata },
    services: { s: { per_host: true, metadata, ...(rates && { total: { rates, guard_ms: 0 } }) } },
  });
  const { gate, time, enterNow } = gateOf(limits("5/SECOND"));
  const entry = { host: "a.example", service: "s" };
  for (let call = 0; call < 3; call += 1) enterNow(entry).release();
  for (let n = 0; n < 80; n += 1) {
    if (n % 20 === 0) await time.advance(3000);
    enterNow({ ...entry, host: `h${n}.example` }).release();
  }
  await time.advance(3000);
  gate.reload(limitPoliciesFrom(limits(), "test"));
  gate.reload(limitPoliciesFrom(limits("10/HOUR"), "test"));
  for (let call = 0; call < 7; call += 1) enterNow(entry).release();
  assert.ok(gate.check({ ...entry, role: "metadata" }), "the hour is full");
});
