import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { steps } from "../../test/breaker/breaker-steps.ts";
import { runSteps } from "../../test/breaker/run-steps.ts";

test("the breakers behave like a simple model in every order of calls, results and operator commands", async () => {
  let total = 0;
  await fc.assert(
    fc.asyncProperty(steps, async list => {
      total += list.length;
      await runSteps(list);
    }),
    { numRuns: 1500 },
  );
  assert.ok(total > 100_000, `${total} steps`);
});
