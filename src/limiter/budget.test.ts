import assert from "node:assert/strict";
import { test } from "node:test";
import { makeWindow } from "../core/limits/window-log.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import { Budget } from "./budget.ts";

function budgetOf(spacingUs: number, ...windows: readonly (readonly [limit: number, spanUs: number])[]): Budget {
  const policy: BudgetPolicy = {
    rates: windows.map(([limit, windowUs]) => ({ limit, windowUs })),
    guardUs: 0,
    spacingUs,
    windows: windows.map(([limit, spanUs]) => makeWindow(limit, spanUs)),
    labels: windows.map(([limit, spanUs]) => `${limit}/${spanUs}us`),
    maxConcurrent: Number.POSITIVE_INFINITY,
    sharesSlots: false,
  };
  return new Budget("a.example", policy, undefined);
}

test("the forecast of a smooth budget adds a distance for each one ahead", () => {
  const budget = budgetOf(100, [50, 1000]);
  assert.equal(budget.estimateUs(0, 1, 500), 500);
  assert.equal(budget.estimateUs(3, 1, 500), 800);
  budget.log.write(budget.windows, 1, 500);
  assert.equal(budget.estimateUs(3, 1, 500), 900);
});

test("every window has its say in a forecast", () => {
  const budget = budgetOf(0, [5, 100], [2, 1000]);
  budget.log.write(budget.windows, 2, 0);
  assert.equal(budget.estimateUs(0, 1, 10), 1000);
});

test("each full window of those ahead takes a span more", () => {
  const budget = budgetOf(0, [2, 1000]);
  assert.equal(budget.estimateUs(1, 1, 10), 0, "both fit");
  assert.equal(budget.estimateUs(2, 1, 10), 1010);
  assert.equal(budget.estimateUs(3, 1, 10), 1010);
  assert.equal(budget.estimateUs(4, 1, 10), 2010);
  budget.log.write(budget.windows, 2, 5);
  assert.equal(budget.estimateUs(0, 1, 10), 1005);
  assert.equal(budget.estimateUs(2, 1, 10), 2005);
});

test("a hold is the least that a forecast can say", () => {
  const budget = budgetOf(0, [2, 1000]);
  budget.holdUntilUs = 700;
  assert.equal(budget.estimateUs(0, 1, 10), 700);
  assert.equal(budget.estimateUs(2, 1, 10), 1010);
});

test("what binds longest is named: the spacing, however short, a window, or a cooldown", () => {
  const budget = budgetOf(1, [5, 1000]);
  budget.log.write(budget.windows, 1, 0);
  assert.equal(budget.constraint(1, 0).kind, "spacing");
  budget.log.write(budget.windows, 4, 0);
  assert.deepEqual(budget.constraint(1, 0), { kind: "window", owner: "a.example", limit: "5/1000us" });
  budget.holdUntilUs = 1000;
  assert.equal(budget.constraint(1, 0).kind, "window");
  budget.holdUntilUs = 1001;
  assert.equal(budget.constraint(1, 0).kind, "cooldown");
});
