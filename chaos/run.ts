/**
 * Real processes share one limit on a real store, while faults are made: `npm run chaos -- --minutes 10 --store redis`.
 *
 *   --minutes N     how long (default 1)
 *   --faults N      ends after this number of faults, if that is earlier
 *   --seed S        decides all faults (default 1)
 *   --mode M        wait or share: what a process does without its store (default share)
 *   --store K       redis, sqlite, sentinel, cluster or postgres (default redis)
 *   --only A,B      makes only these kinds of faults
 *   --json          prints the report as JSON
 *
 * The writes are counted where they are made, over all processes, and at a server that enforces the limit. When a
 * promise of the mode is broken, the exit code is 1 and the output says which, with the fault and the seed.
 */

import { oneOf, positiveNumber, scriptArguments, wholeNumber } from "../scripts/script-arguments.ts";
import { runChaos, STORE_KINDS } from "./chaos.ts";
import { reportText } from "./report.ts";

const { values } = scriptArguments({
  options: {
    minutes: { type: "string", default: "1" },
    faults: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    mode: { type: "string", default: "share" },
    store: { type: "string", default: "redis" },
    only: { type: "string", default: "" },
    json: { type: "boolean", default: false },
  },
});

const report = await runChaos({
  store: oneOf("store", values.store, STORE_KINDS),
  mode: oneOf("mode", values.mode, ["wait", "share"] as const),
  seed: wholeNumber("seed", values.seed),
  seconds: positiveNumber("minutes", values.minutes) * 60,
  faults: wholeNumber("faults", values.faults),
  only: values.only === "" ? [] : values.only.split(","),
  onProgress: line => {
    if (!values.json) console.log(line);
  },
});
console.log(values.json ? JSON.stringify(report, null, 2) : `\n${reportText(report)}`);
if (report.broken.length > 0) process.exitCode = 1;
