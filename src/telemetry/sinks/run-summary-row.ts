import type { DatabaseSync } from "node:sqlite";
import type { RunSummary } from "../summary/run-summary.ts";

/** Rows of hosts or keys that are encoded at once: less than 1 ms of work. */
const ROWS_PER_STEP = 250;

/** Writes the row of a run in the table `run_summary`, and replaces an earlier one. `json` is the encoded summary. */
export function saveSummary(db: DatabaseSync, summary: RunSummary, json: string): void {
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
    json,
  );
}

/** The summary as JSON with `hosts` and `keys` at its end, made in steps: a run with thousands of hosts has megabytes of it. */
export function* summaryJson({ hosts, keys, ...rest }: RunSummary): Generator<void, string, void> {
  let json = JSON.stringify(rest).slice(0, -1);
  for (const [name, rows] of [
    ["hosts", hosts],
    ["keys", keys],
  ] as const) {
    json += `,"${name}":[`;
    for (let at = 0; at < rows.length; at += ROWS_PER_STEP) {
      json += `${at === 0 ? "" : ","}${JSON.stringify(rows.slice(at, at + ROWS_PER_STEP)).slice(1, -1)}`;
      yield;
    }
    json += "]";
  }
  return `${json}}`;
}
