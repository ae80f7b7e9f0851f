import type { TelemetryFile } from "../reading/telemetry-file.ts";
import type { RunSummary } from "../summary/run-summary.ts";
import { RunTally } from "../summary/run-tally.ts";
import { reportPage, type SkippedCounts } from "./report-page.ts";

/** The report on one run. */
export interface RunReport {
  /** All numbers of the report. */
  readonly summary: RunSummary;
  /** Counts of events that could not be read. */
  readonly skipped: SkippedCounts;
  /** The report as one HTML page without scripts. @param section HTML to add, with escaped texts. @default none */
  page(section?: string): string;
}

/** Reads all events of a run and summarizes them. */
export async function reportOn(file: TelemetryFile, runId: string): Promise<RunReport> {
  const tally = new RunTally(runId);
  for await (const event of file.events(runId)) tally.take(event);
  const summary = tally.summary();
  const { unreadable, unknown } = file.skipped;
  const skipped = { unreadable, unknown: [...unknown.values()].reduce((sum, count) => sum + count, 0) };
  return { summary, skipped, page: section => reportPage(summary, tally.timeline(), skipped, section) };
}
