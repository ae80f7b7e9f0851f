/**
 * Compares the breakers with their reference model on random steps.
 * `npm run steps`, or `npm run steps -- --steps 5000000 --seed 7`. A difference is printed with its seed.
 */
import fc from "fast-check";
import { steps } from "../test/breaker/breaker-steps.ts";
import { runSteps } from "../test/breaker/run-steps.ts";
import { scriptArguments, wholeNumber } from "./script-arguments.ts";

const { values } = scriptArguments({
  options: { steps: { type: "string", default: "1000000" }, seed: { type: "string", default: "1" } },
});
const wanted = wholeNumber("steps", values.steps);
const firstSeed = wholeNumber("seed", values.seed);
if (!Number.isSafeInteger(wanted) || wanted < 1 || !Number.isSafeInteger(firstSeed)) {
  console.error(
    `--steps must be a whole number of 1 or more and --seed a whole number, not ${values.steps} and ${values.seed}`,
  );
  process.exit(2);
}

let total = 0;
for (let seed = firstSeed; total < wanted; seed += 1) {
  await fc.assert(
    fc.asyncProperty(steps, async list => {
      total += list.length;
      await runSteps(list);
    }),
    { seed, numRuns: 500 },
  );
  if (process.stdout.isTTY) process.stdout.write(`\r${total} steps, seed ${seed}`);
}
console.log(`${process.stdout.isTTY ? "\r" : ""}${total} steps from seed ${firstSeed}: no difference from the model`);
