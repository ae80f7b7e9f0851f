import assert from "node:assert/strict";
import { test } from "node:test";
import { drawPlan } from "./draw-plan.ts";
import type { Plan } from "./plan.ts";
import { parsePlan, planText } from "./plan-text.ts";
import { shrink } from "./shrink.ts";
import { simulate } from "./simulate.ts";

test("a failing plan shrinks to a smaller one that violates the same law, also after saving", async () => {
  const law = "any window, at each process";
  for (let seed = 0; ; seed += 1) {
    const plan: Plan = { ...drawPlan(seed), sabotage: "loose-rates" };
    const { violations } = await simulate(plan);
    if (!violations.some(violation => violation.law === law)) continue;
    const small = await shrink(plan, law);
    assert.ok(small.calls.length < plan.calls.length);
    assert.deepEqual(small.faults, []);
    const saved = parsePlan(planText(small));
    const { violations: after } = await simulate(saved);
    assert.ok(after.some(violation => violation.law === law));
    return;
  }
});
