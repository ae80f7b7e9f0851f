import { limitTargetOf, textOfTarget } from "../../dashboard/action-target.ts";
import { manifestName } from "../../harvest/manifest/manifest.ts";
import type { Reason } from "../../harvest/reason.ts";
import { ExitCode } from "../exit-code.ts";
import { formatDuration } from "../output/duration.ts";
import { formatBytes, formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { formatTable, type TableOptions, terminalWidth } from "../output/table.ts";
import type { Io } from "../program.ts";
import { type LocationFlags, locationFlagsOf, shellWord, telemetryFolderOf } from "./path-flags.ts";
import type { LearnedLimit } from "./run-counts.ts";
import type { SessionOutcome } from "./run-session.ts";
import type { RunSettings } from "./run-settings.ts";

export function printSummary(outcome: SessionOutcome, settings: RunSettings, io: Io): void {
  if (settings.isJson) printJson(io, summaryJson(outcome, settings));
  else
    io.stdout.write(
      summaryText(outcome, settings, { columns: terminalWidth(io.stdout) }) +
        advice(outcome, locationFlagsOf(settings, io)),
    );
}

/** Prints how many works `run --enqueue-only` has added. */
export function printEnqueued(
  { counts, wasInterrupted }: Pick<SessionOutcome, "counts" | "wasInterrupted">,
  settings: Pick<RunSettings, "folder" | "manifest" | "isJson">,
  io: Pick<Io, "stdout" | "env">,
): void {
  const { wanted: enqueued, present, failedBefore, problems } = counts;
  const manifest = manifestName(settings.manifest);
  if (settings.isJson) {
    printJson(io, { enqueued, present, failedBefore, problems, wasInterrupted, folder: settings.folder, manifest });
    return;
  }
  const parts = [
    `${formatCount(enqueued, "work")} enqueued`,
    ...(present > 0 ? [`${present} already downloaded`] : []),
    ...(failedBefore > 0 ? [`${failedBefore} failed in an earlier run, not retried`] : []),
    ...(problems > 0 ? [formatCount(problems, "invalid line")] : []),
  ];
  io.stdout.write(`${wasInterrupted ? "Interrupted: " : ""}${parts.join(", ")} in ${manifest}\n`);
  io.stdout.write(`To download them: docstokg worker${locationFlagsOf(settings, io).ofManifest}\n`);
}

export function enqueuedExitCode({ counts, wasInterrupted, wasRejected }: SessionOutcome): ExitCode {
  if (wasRejected) return ExitCode.usage;
  if (wasInterrupted) return ExitCode.interrupted;
  return counts.problems > 0 ? ExitCode.partial : ExitCode.ok;
}

/** Works that the user has filtered out are no failure. */
export function exitCodeOf(outcome: SessionOutcome): ExitCode {
  const { counts, report, wasInterrupted, wasRejected } = outcome;
  if (wasRejected) return ExitCode.usage;
  if (wasInterrupted) return ExitCode.interrupted;
  const { failed, pending } = report.works;
  const missing = failed - failedWith("filtered", outcome) + pending + counts.notRefreshed;
  return missing + counts.problems > 0 ? ExitCode.partial : ExitCode.ok;
}

function failedWith(wanted: Reason, { report }: SessionOutcome): number {
  return report.reasons.find(({ state, reason }) => state === "failed" && reason === wanted)?.works ?? 0;
}

function summaryText(outcome: SessionOutcome, settings: RunSettings, tableOptions: TableOptions): string {
  const { folder, manifest, keepsTelemetry } = settings;
  const { counts, report, elapsedMs, wasInterrupted } = outcome;
  const { works, files } = report;
  const parts = [
    `${works.done} of ${formatCount(works.total, "work")} done`,
    ...(counts.present > 0 ? [`${counts.present} of them already downloaded`] : []),
    ...(counts.notRefreshed > 0 ? [`${counts.notRefreshed} not refreshed, with the earlier file`] : []),
    ...(works.failed > 0 ? [`${works.failed} failed`] : []),
    ...(counts.failedBefore > 0 ? [`${counts.failedBefore} of them in an earlier run, not retried`] : []),
    ...(works.pending > 0 ? [`${works.pending} unfinished`] : []),
    ...(works.merged > 0 ? [`${works.merged} merged with another`] : []),
    ...(counts.problems > 0 ? [formatCount(counts.problems, "invalid line")] : []),
  ];
  const traffic = [
    formatCount(counts.requests, "request"),
    `${counts.cached} from the cache`,
    `deferred ${formatCount(counts.deferred, "time")}`,
    `${formatCount(counts.opened, "circuit")} opened`,
    `${formatCount(counts.throttled, "response")} with status 429`,
  ];
  const lines = [
    `${wasInterrupted ? "Interrupted: " : ""}${parts.join(", ")}, in ${formatDuration(elapsedMs)}.`,
    `${formatCount(files.count, "file")}, ${formatBytes(files.bytes)}, in ${folder}`,
    `${traffic.join(", ")}.`,
    ...[...outcome.switchedOff].map(([name, message]) => `Resolver ${name} was switched off: ${message}`),
    ...learnedLines(counts.learnedLimits),
    `Manifest: ${manifestName(manifest)}`,
    ...(keepsTelemetry ? [`Request statistics: docstokg report ${shellWord(telemetryFolderOf(settings))}`] : []),
  ];
  const failed = report.reasons.filter(({ state }) => state === "failed");
  const cells = failed.map(({ reason, works: count }) => [reason, String(count)]);
  const table = failed.length === 0 ? "" : `\n${formatTable(["failed", "works"], cells, tableOptions)}`;
  return `${lines.join("\n")}\n${table}`;
}

/** `--json` and the telemetry have the complete list. */
const LEARNED_SHOWN = 10;

/** One line for each key: its limit in the policy is probably too high. */
function learnedLines(limits: readonly LearnedLimit[]): readonly string[] {
  const lines = limits.slice(0, LEARNED_SHOWN).map(({ key, role, old, new: announced, source }) => {
    // A key may name a tier, a partition, or a host of a service, which `--rate` does not take.
    const target = textOfTarget(limitTargetOf(key, role));
    return `Lower limit announced by ${key} (${role}): ${announced} instead of ${old} (${source}). The run used the lower limit; to use it from the start: --rate '${target}=…', or your ratelimits.yaml`;
  });
  const more = limits.length - LEARNED_SHOWN;
  return more > 0 ? [...lines, `and ${more} more (--json lists them)`] : lines;
}

function summaryJson(outcome: SessionOutcome, { folder, manifest }: RunSettings) {
  const { counts, report, elapsedMs, wasInterrupted } = outcome;
  const { works, files, reasons, resolvers } = report;
  const { requests, cached, deferred, opened, throttled, present, notRefreshed, problems } = counts;
  return {
    works: { ...works, present, notRefreshed, problems },
    files,
    reasons,
    resolvers,
    switchedOff: Object.fromEntries(outcome.switchedOff),
    traffic: { requests, cached, deferred, opened, throttled },
    learnedLimits: counts.learnedLimits,
    elapsedMs,
    wasInterrupted,
    folder,
    manifest: manifestName(manifest),
  };
}

function advice(outcome: SessionOutcome, { ofRun, ofManifest }: LocationFlags): string {
  const { works } = outcome.report;
  if (outcome.wasInterrupted) return `\nTo continue, run the same command or: docstokg retry${ofRun}\n`;
  const limited = failedWith("rate-limited", outcome);
  if (limited > 0)
    return `\nThe quota of a service was spent for ${formatCount(limited, "work")}; --patience waits longer. To continue later: docstokg retry${ofRun}\n`;
  if (works.failed === 0) return "";
  return `\nTo list the failures: docstokg status${ofManifest}\nTo retry them: docstokg retry --failed${ofRun}\n`;
}
