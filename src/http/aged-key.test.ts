import assert from "node:assert/strict";
import { test } from "node:test";
import { key } from "../../test/dashboard/facts.ts";
import { agedKey } from "./aged-key.ts";

const idle = (ageMs: number) => ({ ageMs, calls: 0 });
const ofOrder = { reason: "test", by: "ann@ops", isLooser: true, policyRates: "10/SECOND" };

test("the windows of a process without open calls are empty when they have passed since its status", () => {
  const window = { unit: "requests", used: 5, isLearned: false };
  const windows = [
    { ...window, rate: "5/SECOND", limit: 5 },
    { ...window, rate: "100/MINUTE", limit: 100 },
    { ...window, rate: "credits 100/2SECOND", unit: "credits", limit: 100 },
    { ...window, rate: "of another version", limit: 9 },
  ];
  const published = key("a.example", { windows, unitsPerSecond: 5 });
  const usedAfter = (ageMs: number, multiplier = 1) =>
    agedKey({ ...published, multiplier }, idle(ageMs)).windows.map(({ used }) => used);
  assert.deepEqual(usedAfter(1024), [5, 5, 5, 5]);
  assert.deepEqual(usedAfter(1025), [0, 5, 5, 5], "guard_ms widens the window");
  assert.deepEqual(usedAfter(2025), [0, 5, 0, 5]);
  assert.deepEqual(usedAfter(2024, 0.5), [5, 5, 5, 5], "a slower pace stretches it");
  assert.deepEqual(usedAfter(60_025), [0, 0, 0, 5]);
  assert.equal(agedKey(published, idle(999)).unitsPerSecond, 5);
  assert.equal(agedKey(published, idle(1000)).unitsPerSecond, 0);
  assert.deepEqual(agedKey(published, { ageMs: 60_025, calls: 1 }).windows, windows, "it may have sent more since");
});

test("a limit for which a new call of an idle process has to wait no more is not named", () => {
  const constraint = { kind: "window", owner: "a.example", limit: "5/SECOND" } as const;
  const waiting = key("a.example", { constraint, estimatedWaitMs: 400 });
  assert.deepEqual(agedKey(waiting, idle(399)).constraint, constraint);
  assert.equal(agedKey(waiting, idle(400)).constraint, undefined);
  assert.deepEqual(agedKey(waiting, { ageMs: 400, calls: 1 }).constraint, constraint);
  const slots = { kind: "concurrency", owner: "a.example", limit: "max_concurrent 1" } as const;
  assert.deepEqual(agedKey(key("a.example", { constraint: slots }), idle(400)).constraint, slots);
});

test("orders and holds whose time is over since the status are not in force", () => {
  const order = { ...ofOrder, rates: "50/SECOND", remainingMs: 3000 };
  const ordered = key("a.example", {
    order,
    totalOrder: { ...order, owner: "a.example" },
    hold: { target: "a.example", reason: "test", remainingMs: 3000 },
  });
  for (const calls of [0, 1]) {
    const before = agedKey(ordered, { ageMs: 2999, calls });
    assert.deepEqual([before.order, before.totalOrder, before.hold], [ordered.order, ordered.totalOrder, ordered.hold]);
    const after = agedKey(ordered, { ageMs: 3000, calls });
    assert.deepEqual([after.order, after.totalOrder, after.hold], [undefined, undefined, undefined]);
  }
});
