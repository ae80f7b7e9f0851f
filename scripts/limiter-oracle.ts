/**
 * `npm run oracle -- [--seed 1] [--traces 100000]`: random traces of a `RateLimiter` on virtual time, compared with a
 * plain list of sends. Prints the figures; a violated law ends it with exit code 1 and the seed of its trace.
 */
import { runTrace } from "../test/limiter/oracle/run-trace.ts";
import { drawTrace } from "../test/limiter/oracle/trace-plan.ts";
import { scriptArguments, wholeNumber } from "./script-arguments.ts";

const { values } = scriptArguments({
  options: { seed: { type: "string", default: "1" }, traces: { type: "string", default: "1000" } },
});
const first = wholeNumber("seed", values.seed);
const traces = wholeNumber("traces", values.traces);
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(traces) || traces < 1) {
  console.error(
    `--traces must be a whole number of 1 or more and --seed a whole number, not ${values.traces} and ${values.seed}`,
  );
  process.exit(2);
}
const sums = { traces: 0, granted: 0, refused: 0, compared: 0 };
for (let seed = first; seed < first + traces; seed += 1) {
  const { violations, granted, refused, isCompared } = await runTrace(drawTrace(seed));
  sums.traces += 1;
  sums.granted += granted;
  sums.refused += refused;
  sums.compared += isCompared ? 1 : 0;
  if (violations.length === 0) continue;
  console.error(`seed ${seed}: ${violations.slice(0, 5).join("; ")}`);
  process.exitCode = 1;
  break;
}
console.log(
  `${sums.traces} traces from seed ${first}: ${sums.granted} grants, ${sums.refused} refusals and aborts, ${sums.compared} refusals compared with the real start`,
);
