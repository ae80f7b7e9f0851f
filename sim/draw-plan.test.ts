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
