import assert from "node:assert/strict";
import { test } from "node:test";
import { drawPlan } from "./draw-plan.ts";
import type { Plan } from "./plan.ts";

test("the plans of seeds differ and cover every fault, server model and number of processes", () => {
  const plans = Array.from({ length: 2000 }, (_, seed) => drawPlan(seed));
  const seen = (facts: (plan: Plan) => readonly (string | number)[]) => new Set(plans.flatMap(facts)).size;
  assert.equal(
    seen(({ faults }) => faults.map(({ kind }) => kind)),
    12,
  );
  assert.equal(
    seen(({ faults }) => faults.flatMap(fault => (fault.kind === "throttle" ? [fault.form] : []))),
    13,
  );
  assert.equal(
    seen(({ faults }) => faults.flatMap(fault => (fault.kind === "outage" ? [fault.how] : []))),
    5,
  );
  assert.equal(
    seen(({ faults }) => faults.flatMap(fault => (fault.kind === "lie" ? [fault.lie] : []))),
    5,
  );
  assert.equal(
    seen(({ hosts }) => hosts.map(({ server }) => server.model)),
    5,
  );
  assert.equal(
    seen(({ processes }) => [processes.length]),
    3,
  );
  assert.deepEqual(
    new Set(plans.flatMap(({ store }) => (store === undefined ? [] : [store.whenAway]))),
    new Set(["share", "wait", "refuse"]),
  );
  assert.ok(plans.some(({ hosts }) => hosts.some(({ credits }) => credits?.isSettled === true)));
  assert.ok(plans.some(({ calls }) => calls.some(({ bodyMs }) => bodyMs > 1000)));
  assert.ok(plans.some(({ calls }) => calls.some(({ partition }) => partition !== undefined)));
  assert.ok(plans.some(({ startsWithTotals }) => !startsWithTotals));
  assert.ok(plans.some(({ faults }) => faults.some(fault => fault.kind === "reload" && fault.isPartitioned === false)));
  assert.ok(plans.some(({ hosts }) => hosts.some(({ hasPartitionBreakers }) => hasPartitionBreakers)));
  assert.equal(new Set(plans.map(plan => JSON.stringify({ ...plan, seed: 0 }))).size, 2000);
});

test("each fourth plan has one focus: full windows alone, evicted keys, reloads, or a store that is away", () => {
  const plans = Array.from({ length: 400 }, (_, index) => drawPlan(4 * index + 3));
  const calm = plans.filter(({ faults, store, isAimd }) => faults.length === 0 && store === undefined && !isAimd);
  const evicting = plans.filter(({ keptKeys, hosts }) => keptKeys === 0 && hosts.length === 8);
  const reloading = plans.filter(({ faults }) => faults.length === 3 && faults.every(({ kind }) => kind === "reload"));
  const away = plans.filter(({ faults }) => faults.length > 0 && faults.every(({ kind }) => kind === "store-away"));
  for (const focus of [calm, evicting, reloading, away]) assert.ok(focus.length > 50, `${focus.length} plans`);
  assert.ok(away.every(({ processes, store }) => processes.length > 1 && store !== undefined));
  const rest = Array.from({ length: 400 }, (_, index) => drawPlan(4 * index));
  assert.ok(rest.every(({ keptKeys }) => keptKeys === undefined));
});
