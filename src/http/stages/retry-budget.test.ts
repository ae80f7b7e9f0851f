import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RetryBudget } from "./retry-budget.ts";

test("a host that was never called has three retries, then one for every five calls", () => {
  const budget = new RetryBudget();
  const spent = [1, 2, 3, 4].map(() => budget.spend("a.example"));
  assert.deepEqual(spent, [true, true, true, false]);
  for (let calls = 0; calls < 4; calls += 1) budget.earn("a.example");
  assert.equal(budget.spend("a.example"), false);
  budget.earn("a.example");
  assert.equal(budget.spend("a.example"), true);
});

test("each host has its own retry budget", () => {
  const budget = new RetryBudget();
  while (budget.spend("a.example"));
  assert.equal(budget.spend("b.example"), true);
});

test("in any sequence of calls and failures the attempts stay within 1.2 times the calls plus 3", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300 }), wantsRetry => {
      const budget = new RetryBudget();
      // The sum at each step; a period may begin at any of them.
      const steps = wantsRetry.flatMap(wants => {
        budget.earn("a.example");
        return ["call", ...(wants && budget.spend("a.example") ? ["retry"] : [])];
      });
      for (let from = 0; from < steps.length; from += 1) {
        let calls = 0;
        let attempts = 0;
        for (const step of steps.slice(from)) {
          attempts += 1;
          if (step === "call") calls += 1;
          assert.ok(attempts <= 1.2 * calls + 3 + 1e-6);
        }
      }
    }),
    { numRuns: 200 },
  );
});
