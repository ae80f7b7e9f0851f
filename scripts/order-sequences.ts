/**
 * Random sequences of requests, orders and outages on three processes that share a store: no order may be undone.
 * `npm run orders`, or `npm run orders -- --sequences 50000 --seed 7`. A failure is printed with its seed.
 */
import { runOrderSequence } from "../test/sharing/order-sequences.ts";
import { scriptArguments, wholeNumber } from "./script-arguments.ts";

const { values } = scriptArguments({
  options: { sequences: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } },
});
const wanted = wholeNumber("sequences", values.sequences);
const firstSeed = wholeNumber("seed", values.seed);
if (!Number.isSafeInteger(wanted) || wanted < 1 || !Number.isSafeInteger(firstSeed)) {
  console.error(
    `--sequences must be a whole number of 1 or more and --seed a whole number, not ${values.sequences} and ${values.seed}`,
  );
  process.exit(2);
}

let steps = 0;
for (let seed = firstSeed; seed < firstSeed + wanted; seed += 1) steps += await runOrderSequence(seed);
console.log(`${wanted} sequences with ${steps} steps from seed ${firstSeed}: no order was undone`);
