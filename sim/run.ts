/**
 * Simulates the worlds of many seeds and checks every law on every fact: `npm run sim -- --seeds 10000`.
 *
 *   --seeds N        number of seeds (default 1000)
 *   --from S         first seed (default: after the recorded seeds)
 *   --threads N      number of threads (default: one for each core)
 *   --record         adds the run to sim/totals.json
 *   --seed S         runs one seed and prints its trace
 *   --plan FILE      runs one plan and prints its trace
 *   --sabotage X     builds a fault into the hub of --seed, to test that a law detects it
 *   --even-shares N  measures how evenly and how fully four processes use one limit, over N worlds
 *
 * The last lines say how often each law applied: a law that never applies proves nothing.
 * When a law is violated, the exit code is 1 and the output has the seed, the law and a small plan that violates it.
 */
import { readFileSync } from "node:fs";
import { scriptArguments, wholeNumber } from "../scripts/script-arguments.ts";
import { type BatchResult, type BrokenSeed, runBatch } from "./batch.ts";
import { drawPlan } from "./draw-plan.ts";
import { evenShares, type SampleMean } from "./even-shares.ts";
import type { Plan, Sabotage } from "./plan.ts";
import { parsePlan, planText } from "./plan-text.ts";
import { shrink } from "./shrink.ts";
import { simulate } from "./simulate.ts";
import { readTotals, recordTotals, totalsSentence } from "./totals.ts";
import { traceLine } from "./trace.ts";

const { values } = scriptArguments({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string" },
    seed: { type: "string" },
    plan: { type: "string" },
    threads: { type: "string" },
    record: { type: "boolean", default: false },
    sabotage: { type: "string" },
    "even-shares": { type: "string" },
  },
});

if (values["even-shares"] !== undefined) await measureShares(wholeNumber("even-shares", values["even-shares"]));
else if (values.seed !== undefined || values.plan !== undefined) await replay();
else await runMany();

async function replay(): Promise<void> {
  const drawn =
    values.plan === undefined
      ? drawPlan(wholeNumber("seed", values.seed))
      : parsePlan(readFileSync(values.plan, "utf8"));
  const plan: Plan = values.sabotage === undefined ? drawn : { ...drawn, sabotage: values.sabotage as Sabotage };
  console.log(planText(plan));
  const { violations, requests } = await simulate(plan, fact => {
    const line = traceLine(fact);
    if (line !== undefined) console.log(line);
  });
  for (const { law, message, atUs } of violations) console.log(`VIOLATION at ${atUs / 1000} ms: ${law}: ${message}`);
  console.log(`${requests} requests, ${violations.length} laws violated`);
  if (violations.length > 0) process.exitCode = 1;
}

async function measureShares(worlds: number): Promise<void> {
  const { spread, utilisation } = await evenShares(worlds);
  const text = ({ mean, error, lowest, highest }: SampleMean) =>
    `${mean.toFixed(4)} ± ${error.toFixed(4)} (standard error), from ${lowest.toFixed(3)} to ${highest.toFixed(3)}`;
  console.log(`${worlds} worlds of four processes with constant demand at 8/SECOND`);
  console.log(`spread, (maximum - minimum) / mean: ${text(spread)}`);
  console.log(`utilisation, units written / units allowed: ${text(utilisation)}`);
}

async function runMany(): Promise<void> {
  const count = wholeNumber("seeds", values.seeds);
  const from = values.from === undefined ? readTotals().nextSeed : wholeNumber("from", values.from);
  if (values.record && values.from !== undefined)
    throw new RangeError("--record continues after the recorded seeds; it cannot be combined with --from");
  const threads = values.threads === undefined ? undefined : wholeNumber("threads", values.threads);
  const beganMs = performance.now();
  const sum = await runBatch(
    { from, count },
    { ...(threads === undefined ? {} : { threads }), onChunk: progress(count) },
  );
  const tookS = (performance.now() - beganMs) / 1000;
  console.log(
    `${sum.seeds} seeds from ${from}: ${sum.requests} requests, ${sum.broken.length} violations, ${tookS.toFixed(1)} s`,
  );
  for (const [title, count] of Object.entries(sum.occasions).sort(([, a], [, b]) => a - b))
    console.log(`${String(count).padStart(10)}  ${title}`);
  if (values.record) console.log(`totals: ${totalsSentence(recordTotals(sum))}`);
  if (sum.broken.length === 0) return;
  process.exitCode = 1;
  const [first] = sum.broken;
  if (first !== undefined) await showSmallest(first);
}

async function showSmallest({ seed, law }: BrokenSeed): Promise<void> {
  const plan = await shrink(drawPlan(seed), law);
  console.log(`the smallest plan found that violates the law; save it and run it with --plan:\n${planText(plan)}`);
}

/** Prints every violation at once, and the progress now and then. */
function progress(count: number): (sum: BatchResult) => void {
  let reportedSeeds = 0;
  let reportedBroken = 0;
  return ({ seeds, broken }) => {
    for (const { seed, law, message } of broken.slice(reportedBroken)) console.log(`seed ${seed}: ${law}: ${message}`);
    reportedBroken = broken.length;
    if (seeds - reportedSeeds < Math.max(10_000, count / 20)) return;
    reportedSeeds = seeds;
    console.log(`${seeds} of ${count} seeds, ${broken.length} violations`);
  };
}
