import { dirname } from "node:path";
import type { ExitCode as Code } from "../exit-code.ts";
import { ExitCode } from "../exit-code.ts";
import { formatBytes, formatCount, formatDuration } from "../output/format.ts";
import { formatTable } from "../output/table.ts";
import type { SessionOutcome } from "./run-session.ts";
import type { RunSettings } from "./run-settings.ts";

/** What a run came to, for people. */
export function summaryText(
  outcome: SessionOutcome,
  { folder, manifest, keepsTelemetry }: Pick<RunSettings, "folder" | "manifest" | "keepsTelemetry">,
): string {
  const { tally, report, elapsedMs, wasInterrupted } = outcome;
  const { works, files } = report;
  const parts = [
    `${works.done} of ${formatCount(works.total, "work")} done`,
    ...(tally.present > 0 ? [`${tally.present} of them before`] : []),
    ...(works.failed > 0 ? [`${works.failed} failed`] : []),
    ...(tally.failedBefore > 0 ? [`${tally.failedBefore} of them before, and not tried again`] : []),
    ...(works.pending > 0 ? [`${works.pending} not finished`] : []),
    ...(tally.problems > 0 ? [`${formatCount(tally.problems, "line")} not understood`] : []),
  ];
  const traffic = [
    formatCount(tally.requests, "request"),
    `${tally.cached} from the cache`,
    `put off ${formatCount(tally.putOff, "time")}`,
    `${formatCount(tally.opened, "circuit")} opened`,
    `${tally.throttled} answered with 429`,
  ];
  const lines = [
    `${wasInterrupted ? "Interrupted: " : ""}${parts.join(", ")}, in ${formatDuration(elapsedMs)}.`,
    `${formatCount(files.count, "file")}, ${formatBytes(files.bytes)}, in ${folder}`,
    `${traffic.join(", ")}.`,
    `The manifest is ${manifest}`,
    ...(keepsTelemetry ? [`docstokg report ${dirname(manifest)} tells what became of the requests`] : []),
  ];
  const failed = report.reasons.filter(({ state }) => state === "failed");
  const table =
    failed.length === 0
      ? ""
      : `\n${formatTable(
          ["failed", "works"],
          failed.map(row => [row.reason, String(row.works)]),
        )}`;
  return `${lines.join("\n")}\n${table}${advice(outcome)}`;
}

export function summaryJson(
  outcome: SessionOutcome,
  { folder, manifest }: Pick<RunSettings, "folder" | "manifest">,
): string {
  const { tally, report, elapsedMs, wasInterrupted } = outcome;
  const { works, files, reasons, resolvers } = report;
  const { requests, cached, putOff, opened, throttled, present, problems } = tally;
  const traffic = { requests, cached, putOff, opened, throttled };
  const summary = {
    works: { ...works, present, problems },
    files,
    reasons,
    resolvers,
    traffic,
    elapsedMs,
    wasInterrupted,
  };
  return `${JSON.stringify({ ...summary, folder, manifest }, undefined, 2)}\n`;
}

export function exitCodeOf({ tally, report, wasInterrupted, wasRefused }: SessionOutcome): Code {
  if (wasRefused) return ExitCode.usage;
  if (wasInterrupted) return ExitCode.interrupted;
  return report.works.failed + report.works.pending + tally.problems > 0 ? ExitCode.partial : ExitCode.ok;
}

function advice({ report: { works }, wasInterrupted }: SessionOutcome): string {
  if (wasInterrupted) return "\nThe same command, or docstokg retry, goes on from here.\n";
  return works.failed > 0 ? "\ndocstokg status says more; docstokg retry --failed tries them again.\n" : "";
}
