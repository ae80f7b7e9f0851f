import assert from "node:assert/strict";
import { test } from "node:test";
import { LEDGER_BATCH, runLedger } from "./ledger/run-ledger.ts";

test("2,000 random scripts: servers, events, tables, metrics, spans, snapshot and report agree for every host", async () => {
  const { scripts, calls, attempts } = await runLedger({ firstSeed: 1, scripts: 10 * LEDGER_BATCH });
  assert.equal(scripts, 2000);
  assert.ok(attempts > 3000 && calls > attempts / 2, `${calls} calls, ${attempts} requests`);
});
