import type { WorksReport } from "../../harvest/report/works-report.ts";
import { countOf, durationOf, momentOf, percentOf, plainText } from "../../telemetry/report/number-text.ts";
import type { RunReport } from "../../telemetry/report/run-report.ts";
import type { RunSummary } from "../../telemetry/summary/run-summary.ts";
import { formatBytes } from "../output/format.ts";
import { formatPairs, formatTable } from "../output/table.ts";

const MAX_ROWS = 25;

/** The report as text; `otherRuns` counts the other runs in the same telemetry. */
export function reportText({ summary, skipped }: RunReport, otherRuns: number, columns: number | undefined): string {
  const sections = [
    headLines(summary, skipped, otherRuns)
      .map(line => `${line}\n`)
      .join(""),
    formatPairs(figures(summary), { columns }),
    hostTable(summary, columns),
    decisionTable(summary, columns),
    breakerTable(summary, columns),
    shadowTable(summary, columns),
    keyTable(summary, columns),
  ];
  return sections.filter(section => section !== "").join("\n");
}

/** The works of the manifest beside the telemetry. */
export function worksText({ works, files, yields }: WorksReport, columns: number | undefined): string {
  const { done, failed, pending } = works;
  const head =
    `works of the manifest: ${countOf(done)} done, ${countOf(failed)} failed, ${countOf(pending)} unfinished; ` +
    `${counted(files.count, "file", "files")}, ${formatBytes(files.bytes)}\n`;
  const header = ["resolver", "works asked", "works stored", "queries", "time", "downloads", "time", "received"];
  const rows = yields.map(each => [
    ...[plainText(each.resolver), countOf(each.asked), countOf(each.stored), countOf(each.queries)],
    ...[durationOf(each.queryMs), countOf(each.downloads), durationOf(each.downloadMs), formatBytes(each.bytes)],
  ]);
  return head + tableWithRest(header, rows, rows.length, columns);
}

function headLines(summary: RunSummary, skipped: RunReport["skipped"], otherRuns: number): readonly string[] {
  const { runId, program, version, startedMs, durationMs, hasEnded, dropped } = summary;
  const name = program === undefined ? "run" : `${plainText(program)} ${plainText(version ?? "")}`.trim();
  const duration = `${durationOf(durationMs)}${hasEnded ? "" : " (no end recorded: still running, or killed)"}`;
  const more = `${counted(otherRuns, "more run", "more runs")} in this telemetry; choose one with --telemetry <path> <run id>`;
  return [
    `${plainText(runId)}: ${name}, ${momentOf(startedMs)} UTC, for ${duration}`,
    ...(otherRuns > 0 ? [more] : []),
    ...(dropped > 0
      ? [`warning: ${counted(dropped, "event was", "events were")} dropped; the counts are too low`]
      : []),
    ...(skipped.unreadable > 0 ? [`warning: ${counted(skipped.unreadable, "line", "lines")} could not be read`] : []),
    ...(skipped.unknown > 0
      ? [`warning: ${counted(skipped.unknown, "event", "events")} of types unknown to this version`]
      : []),
  ];
}

function figures(summary: RunSummary): readonly (readonly [string, string])[] {
  const { calls, outcomes, cache, throttles, delayMs, limiter, breaker, topByDelay, topByBlocks } = summary;
  const outcomeCounts = Object.entries(outcomes).map(([outcome, count]) => `${countOf(count)} ${outcome}`);
  const precision = delayMs.isExact ? "" : " (percentiles accurate to 1 %)";
  return [
    ["calls", `${countOf(calls)}: ${outcomeCounts.join(", ")}`],
    [
      "cache",
      `${percentOf(cache.hitRate)} hits (${countOf(cache.hits)}, ${countOf(cache.stale)} of them stale), ` +
        `${countOf(cache.revalidated)} revalidated, ${countOf(cache.coalesced)} coalesced` +
        (cache.afterRequest > 0 ? `, ${countOf(cache.afterRequest)} served after a request` : "") +
        (summary.refreshes > 0 ? `, ${counted(summary.refreshes, "refresh", "refreshes")} in the background` : ""),
    ],
    [
      "429/503",
      `${percentOf(throttles.rate)} of ${counted(throttles.attempts, "attempt", "attempts")}: ` +
        `${countOf(throttles.answers429)} and ${countOf(throttles.answers503)}` +
        (summary.connectFailures > 0 ? `; ${countOf(summary.connectFailures)} more without a connection` : ""),
    ],
    [
      "waits",
      `p50 ${durationOf(delayMs.p50)}, p95 ${durationOf(delayMs.p95)}, max ${durationOf(delayMs.max)}${precision}`,
    ],
    [
      "limiter",
      `${countOf(limiter.acquired)} acquired, ${countOf(limiter.blocked)} blocked, ` +
        `${counted(limiter.headSkipped, "HEAD request", "HEAD requests")} not counted`,
    ],
    ["breakers", breakerText(breaker)],
    ["after openings", afterOpenText(breaker)],
    ["saved by breakers", durationOf(breaker.timeSavedMs)],
    ...shadowFigures(summary),
    ["most delayed", topHosts(topByDelay, durationOf)],
    ["most blocked", topHosts(topByBlocks, countOf)],
  ];
}

function breakerText({ denied, opens, opensPerHour, opensByReason }: RunSummary["breaker"]): string {
  const reasons = Object.entries(opensByReason)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${countOf(count)} ${reason}`);
  const opened = `${counted(opens, "opening", "openings")} of circuits and cooldowns (${opensPerHour.toFixed(1)} per hour)`;
  const refused = `${counted(denied, "call", "calls")} refused`;
  return `${refused}, ${opened}${reasons.length > 0 ? `: ${reasons.join(", ")}` : ""}`;
}

function afterOpenText({ afterOpen }: RunSummary["breaker"]): string {
  const { succeeded, failed, successRate } = afterOpen;
  const calls = succeeded + failed;
  if (calls === 0) return "no call after an opening yet";
  return `${percentOf(successRate)} of first calls succeeded (${countOf(succeeded)} of ${countOf(calls)})`;
}

function topHosts(
  top: readonly { readonly host: string; readonly value: number }[],
  format: (value: number) => string,
): string {
  const hosts = top.slice(0, 3).map(({ host, value }) => `${plainText(host)} ${format(value)}`);
  return hosts.join(", ") || "(none)";
}

function hostTable({ hosts }: RunSummary, columns: number | undefined): string {
  const header = ["host", "role", "calls", "cached", "failed", "refused", "429/503", "wait p50", "p95"];
  const rows = hosts
    .slice(0, MAX_ROWS)
    .map(row => [
      plainText(row.host),
      plainText(row.role),
      countOf(row.calls),
      countOf(row.outcomes.cached),
      countOf(row.outcomes.failed),
      countOf(row.outcomes.refused),
      percentOf(row.attempts === 0 ? 0 : (row.answers429 + row.answers503) / row.attempts),
      durationOf(row.delayMs.p50),
      durationOf(row.delayMs.p95),
    ]);
  return tableWithRest(header, rows, hosts.length, columns);
}

/** What enforcing would have done, if a part of the policy was in shadow mode and would have acted. */
function shadowFigures({ shadow }: RunSummary): readonly (readonly [string, string])[] {
  const { waits, waitMs, limiterRefusals, breakerRefusals } = shadow;
  if (waits + limiterRefusals + breakerRefusals === 0) return [];
  const waited = `${counted(waits, "wait", "waits")} of ${durationOf(waitMs)} in total`;
  const refused = `${countOf(limiterRefusals)} refused by limits, ${countOf(breakerRefusals)} by breakers`;
  return [["shadow mode", `enforcing would have caused ${waited}; ${refused}`]];
}

function shadowTable({ shadow: { hosts } }: RunSummary, columns: number | undefined): string {
  const header = ["in shadow mode", "would wait", "for", "refused by limits", "refused by breakers"];
  const rows = hosts
    .slice(0, MAX_ROWS)
    .map(row => [
      plainText(row.host),
      countOf(row.waits),
      durationOf(row.waitMs),
      countOf(row.limiterRefusals),
      countOf(row.breakerRefusals),
    ]);
  return tableWithRest(header, rows, hosts.length, columns);
}

/** Which line of the policy has cost how much time. */
function decisionTable({ decisions }: RunSummary, columns: number | undefined): string {
  const header = ["decided by", "waits", "waited", "calls refused"];
  const rows = decisions
    .slice(0, MAX_ROWS)
    .map(row => [plainText(row.decidedBy), countOf(row.waits), durationOf(row.waitMs), countOf(row.refusals)]);
  return tableWithRest(header, rows, decisions.length, columns);
}

function breakerTable({ breaker: { hosts } }: RunSummary, columns: number | undefined): string {
  const header = ["breakers of", "openings", "per hour", "calls refused", "time saved"];
  const rows = hosts
    .slice(0, MAX_ROWS)
    .map(row => [
      plainText(row.host),
      countOf(row.opens),
      row.opensPerHour.toFixed(1),
      countOf(row.denied),
      durationOf(row.timeSavedMs),
    ]);
  return tableWithRest(header, rows, hosts.length, columns);
}

function keyTable({ keys }: RunSummary, columns: number | undefined): string {
  const header = ["key", "role", "acquired", "blocked", "HEAD not counted", "AIMD multiplier"];
  const rows = keys
    .slice(0, MAX_ROWS)
    .map(row => [
      plainText(row.key),
      plainText(row.role),
      countOf(row.acquired),
      countOf(row.blocked),
      countOf(row.headSkipped),
      row.multiplier === 1 && row.leastMultiplier === 1
        ? ""
        : `${row.multiplier.toFixed(2)} (min ${row.leastMultiplier.toFixed(2)})`,
    ]);
  return tableWithRest(header, rows, keys.length, columns);
}

function tableWithRest(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  total: number,
  columns: number | undefined,
): string {
  if (rows.length === 0) return "";
  const more = total - rows.length;
  const note = more > 0 ? `… and ${counted(more, "more row", "more rows")}; --json prints all\n` : "";
  return formatTable(header, rows, { columns }) + note;
}

/** `1 event`, `1,234 events`. */
function counted(count: number, one: string, many: string): string {
  return `${countOf(count)} ${count === 1 ? one : many}`;
}
