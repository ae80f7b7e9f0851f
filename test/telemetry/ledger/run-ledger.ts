/**
 * `npm run ledger -- --scripts 100000 --seed 1`: random scripts of calls against real servers that record their
 * requests. Exit code 1 when the records of servers, events, tables, metrics, spans and report differ; the message names
 * the seed.
 */

import { scriptArguments, wholeNumber } from "../../../scripts/script-arguments.ts";
import { type LedgerTotals, runLedgerBatch } from "./ledger-batch.ts";

/** Scripts that share a hub and its telemetry. */
export const LEDGER_BATCH = 200;

export async function runLedger(
  { firstSeed, scripts }: { readonly firstSeed: number; readonly scripts: number },
  onBatch: (totals: LedgerTotals) => void = () => undefined,
): Promise<LedgerTotals> {
  const totals: LedgerTotals = { scripts: 0, calls: 0, attempts: 0, events: 0 };
  // Most errors here are aborts on purpose; their stacks are most of their cost.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    for (let seed = firstSeed; totals.scripts < scripts; seed += 1) {
      await runLedgerBatch(seed, Math.min(LEDGER_BATCH, scripts - totals.scripts), totals);
      onBatch(totals);
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return totals;
}

if (process.argv[1] === import.meta.filename) {
  const { values } = scriptArguments({ options: { scripts: { type: "string" }, seed: { type: "string" } } });
  const print = ({ scripts, calls, attempts, events }: LedgerTotals) =>
    process.stdout.write(
      `${scripts} scripts: ${calls} calls, ${attempts} requests, ${events} events; all records agree\n`,
    );
  const options = {
    firstSeed: wholeNumber("seed", values.seed ?? "1"),
    scripts: wholeNumber("scripts", values.scripts ?? "100000"),
  };
  await runLedger(options, totals => {
    if (totals.scripts % 10_000 === 0) print(totals);
  }).then(print);
}
