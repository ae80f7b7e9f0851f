import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { makeWindow } from "../core/limits/window-log.ts";
import { costPolicy, type RoleBudgetPolicy, UNLIMITED } from "../policy/budget-policy.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Budget } from "./budget.ts";
import { chargeOf } from "./charge.ts";
import { RoleBudget } from "./role-budget.ts";
import { Scheduler } from "./scheduler.ts";
import { Waiter } from "./waiter.ts";

const window = fc.record({ limit: fc.integer({ min: 1, max: 6 }), ms: fc.integer({ min: 1, max: 300 }) });
const policy = fc.record({
  windows: fc.array(window, { maxLength: 2 }),
  spacingMs: fc.constantFrom(0, 0, 0, 7),
  coarse: fc.constantFrom(undefined, undefined, { limit: 450, ms: 2000 }),
  credits: fc.constantFrom(undefined, undefined, { limit: 30, ms: 90 }, { limit: 1000, ms: 700 }),
});
const tree = fc.record({
  group: fc.option(policy, { nil: undefined }),
  hosts: fc.array(
    fc.record({
      total: fc.option(policy, { nil: undefined }),
      roles: fc.array(policy, { minLength: 1, maxLength: 3 }),
    }),
    {
      minLength: 1,
      maxLength: 2,
    },
  ),
});
const arrivals = fc.array(
  fc.record({
    gapMs: fc.constantFrom(0, 0, 0, 1, 5, 40, 300),
    which: fc.nat(5),
    units: fc.constantFrom(1, 1, 1, 2, 3),
    credits: fc.constantFrom(0, 1, 10, 30),
    boundMs: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 20, 150, 800),
    abortMs: fc.constantFrom(undefined, undefined, undefined, 3, 60),
  }),
  { maxLength: 30 },
);

type Tree = typeof tree extends fc.Arbitrary<infer Value> ? Value : never;
type Policy = NonNullable<Tree["group"]>;
type Arrival = typeof arrivals extends fc.Arbitrary<readonly (infer Value)[]> ? Value : never;

function policyOf({ windows, spacingMs, coarse, credits }: Policy): RoleBudgetPolicy {
  const all = coarse === undefined ? windows : [...windows, coarse];
  return {
    ...UNLIMITED,
    windows: all.map(({ limit, ms }) => makeWindow(limit, ms * 1000)),
    labels: all.map(({ limit, ms }) => `${limit}/${ms}ms`),
    spacingUs: spacingMs * 1000,
    costs:
      credits === undefined ? [] : [costPolicy("credits", [{ limit: credits.limit, windowUs: credits.ms * 1000 }], 0)],
  } as unknown as RoleBudgetPolicy;
}

/** A scheduler over a random tree of budgets. It records when each request was granted, and charges it at once. */
function schedulerOf({ group, hosts }: Tree) {
  const time = new FakeTime();
  const root = new Budget("global", UNLIMITED, undefined);
  const top = group && new Budget("group", policyOf(group), undefined);
  const roleBudgets = hosts.flatMap(({ total, roles }, host) => {
    const above = total === undefined ? top : new Budget(`total ${host}`, policyOf(total), top);
    return roles.map(one => new RoleBudget(`host ${host}`, "metadata", policyOf(one), above));
  });
  const grantedUs = new Map<Waiter, number>();
  const chargeAll = ({ roleBudget, charge }: Waiter, nowUs: number) => {
    for (let at: Budget | undefined = roleBudget; at; at = at.above) at.write(charge, nowUs);
  };
  const serve = () => {
    const nowUs = time.monotonicUs();
    for (let waiter = scheduler.next(nowUs); waiter !== undefined; waiter = scheduler.next(nowUs)) {
      scheduler.take(waiter, nowUs);
      chargeAll(waiter, nowUs);
      grantedUs.set(waiter, nowUs);
      scheduler.granted(waiter);
    }
  };
  const scheduler = new Scheduler(root, time, serve);
  const leave = (waiter: Waiter) => {
    scheduler.leave(waiter);
    serve();
  };
  const waiterOf = (which: number, units: number, credits: number, boundMs: number): Waiter => {
    const roleBudget = roleBudgets[which % roleBudgets.length] as RoleBudget;
    let most = units;
    for (let at: Budget | undefined = roleBudget; at; at = at.above)
      for (const { limit } of at.windows) most = Math.min(most, limit);
    const call = { host: roleBudget.name, role: roleBudget.role, maxWaitMs: boundMs };
    const costs = roleBudget.costLogs.length === 0 ? undefined : new Map([["credits", credits]]);
    return new Waiter({ roleBudget, charge: chargeOf(most, costs), call, arrivedUs: time.monotonicUs(), boundMs });
  };
  /** As the gate does: granted at once if nothing is ahead and every budget has capacity, else queued. */
  const enter = (waiter: Waiter): void => {
    const nowUs = time.monotonicUs();
    let isFree = !scheduler.isContended(waiter.roleBudget);
    for (let at: Budget | undefined = waiter.roleBudget; at; at = at.above)
      isFree &&= at.readyUs(waiter.charge, nowUs) <= nowUs;
    if (isFree) {
      chargeAll(waiter, nowUs);
      grantedUs.set(waiter, nowUs);
    } else {
      scheduler.join(waiter);
      serve();
    }
  };
  const runToEnd = async () => {
    for (let leftMs = time.nextTimerMs; leftMs !== undefined; leftMs = time.nextTimerMs) await time.advance(leftMs);
  };
  return { time, scheduler, roleBudgets, grantedUs, waiterOf, enter, leave, runToEnd };
}

/** The world after these arrivals, and the requests that still wait in it. */
async function afterArrivals(shape: Tree, earlier: readonly Arrival[]) {
  const world = schedulerOf(shape);
  const { time, grantedUs, waiterOf, enter, leave } = world;
  const waiters: Waiter[] = [];
  for (const { gapMs, which, units, credits, boundMs, abortMs } of earlier) {
    await time.advance(gapMs);
    const waiter = waiterOf(which, units, credits, boundMs);
    waiters.push(waiter);
    enter(waiter);
    if (abortMs !== undefined)
      time.setTimer(abortMs, () => {
        if (!grantedUs.has(waiter)) leave(waiter);
      });
  }
  // Every abort is over.
  await time.advance(61);
  const waiting = waiters.filter(waiter => !waiter.hasLeft);
  return { ...world, waiting };
}

test("an estimate is the instant at which a new request starts if nothing else arrives", async () => {
  await fc.assert(
    fc.asyncProperty(tree, arrivals, fc.nat(5), fc.integer({ min: 1, max: 3 }), async (shape, earlier, which, size) => {
      const unbounded = earlier.map(one => ({ ...one, boundMs: Number.POSITIVE_INFINITY }));
      const { time, scheduler, grantedUs, waiterOf, enter, runToEnd } = await afterArrivals(shape, unbounded);
      const waiter = waiterOf(which, size, size * 7, Number.POSITIVE_INFINITY);
      const { roleBudget, charge } = waiter;
      const { startUs } = scheduler.estimates.startOf(roleBudget, charge, time.monotonicUs());
      enter(waiter);
      await runToEnd();
      assert.equal(startUs, grantedUs.get(waiter));
    }),
    { numRuns: 5000 },
  );
});

test("the requests that an estimate calls late would be, and without them all others start within their bounds", async () => {
  await fc.assert(
    fc.asyncProperty(tree, arrivals, async (shape, earlier) => {
      const [refusing, keeping] = [await afterArrivals(shape, earlier), await afterArrivals(shape, earlier)];
      const { time, scheduler, roleBudgets, grantedUs, waiting, leave } = refusing;
      const nowUs = time.monotonicUs();
      const late = new Set<Waiter>();
      const lateNow = () => {
        for (const roleBudget of roleBudgets) scheduler.estimates.changed(roleBudget);
        return scheduler.estimates.takeLate(nowUs).map(({ waiter }) => waiter);
      };
      // Requests that leave change the turns of the others, so that one more may be late.
      for (let found = lateNow(); found.length > 0; found = lateNow())
        for (const waiter of found) {
          if (!late.has(waiter)) leave(waiter);
          late.add(waiter);
        }
      await refusing.runToEnd();
      await keeping.runToEnd();
      for (const waiter of waiting)
        assert.ok(late.has(waiter) || (grantedUs.get(waiter) ?? 0) <= waiter.latestUs(nowUs), "in time");
      // The first that the estimate calls late does not depend on the others.
      const [first] = late;
      const same = first && keeping.waiting[waiting.indexOf(first)];
      assert.ok(same === undefined || (keeping.grantedUs.get(same) ?? 0) > same.latestUs(nowUs), "would be late");
    }),
    { numRuns: 5000 },
  );
});
