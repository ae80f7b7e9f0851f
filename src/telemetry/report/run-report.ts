import type { TelemetryFile } from "../reading/telemetry-file.ts";
import type { RunSummary } from "../summary/run-summary.ts";
import { RunTally } from "../summary/run-tally.ts";
import { type PageNotes, reportPage } from "./report-page.ts";

/** What one run came to, in numbers and as a page. */
export interface RunReport {
  readonly summary: RunSummary;
  readonly notes: PageNotes;
  page(): string;
}

/** Reads all events of a run once. */
export async function reportOn(file: TelemetryFile, runId: string): Promise<RunReport> {
  const tally = new RunTally(runId);
  for await (const event of file.events(runId)) tally.take(event);
  const summary = tally.summary();
  const { unreadable, unknown } = file.notes;
  const notes = { unreadable, unknown: [...unknown.values()].reduce((sum, count) => sum + count, 0) };
  return { summary, notes, page: () => reportPage(summary, tally.timeline(), notes) };
}
