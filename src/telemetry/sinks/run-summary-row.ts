import type { DatabaseSync } from "node:sqlite";
import type { RunSummary } from "../summary/run-summary.ts";

/** Writes the row of a run in the table `run_summary`, and replaces an earlier one. */
export function saveSummary(db: DatabaseSync, summary: RunSummary): void {
  const { runId, configHashes, program, startedMs, endedMs, calls, cache, throttles, delayMs, limiter, breaker } =
    summary;
  db.prepare(`INSERT OR REPLACE INTO run_summary VALUES (${Array.from({ length: 16 }, () => "?").join(", ")})`).run(
    runId,
    configHashes.at(-1) ?? "",
    program ?? null,
    startedMs,
    endedMs,
    calls,
    cache.hitRate,
    throttles.rate,
    delayMs.p50,
    delayMs.p95,
    limiter.acquired,
    limiter.blocked,
    breaker.opens,
    breaker.denied,
    breaker.timeSavedMs,
    JSON.stringify(summary),
  );
}
