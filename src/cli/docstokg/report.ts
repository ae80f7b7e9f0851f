import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { ConfigError } from "../../errors.ts";
import { type ListedRun, openTelemetryFile } from "../../telemetry/reading/telemetry-file.ts";
import { countOf, durationOf, momentOf, percentOf, plainText } from "../../telemetry/report/number-text.ts";
import { type RunReport, reportOn } from "../../telemetry/report/run-report.ts";
import type { RunSummary } from "../../telemetry/summary/run-summary.ts";
import { ExitCode } from "../exit-code.ts";
import { formatTable } from "../output/table.ts";
import type { CliCommand } from "../program.ts";

const ROWS_MAX = 25;

/** `docstokg report`: what a run came to. */
export const report: CliCommand = {
  name: "report",
  summary: "add up the telemetry of a run",
  configure: command => {
    command
      .argument("[run]", "the folder of a run, a file of telemetry, or the id of a run (or how it begins)")
      .option("--telemetry <file>", "the file or folder to look in for the id; without it, this folder")
      .option("--html <file>", "write a page with charts")
      .option("--json", "print JSON");
  },
  run: async ([run], options, io) => {
    const { path, wanted } = telemetryPathOf(run, options["telemetry"]);
    const file = await openTelemetryFile(path).catch(error => {
      throw run === undefined || path !== "." ? error : runNotFound(run, error);
    });
    try {
      const runs = await file.runs();
      const { runId } = chosen(runs, wanted, path);
      const runReport = await reportOn(file, runId);
      const html = options["html"];
      if (typeof html === "string") await writeAtomically(html, runReport.page());
      if (options["json"]) {
        const otherRuns = runs.map(({ runId: id }) => id).filter(id => id !== runId);
        const { unreadable, unknown } = runReport.skipped;
        const skipped = { unreadableLines: unreadable, unknownEvents: unknown };
        io.stdout.write(`${JSON.stringify({ ...runReport.summary, ...skipped, otherRuns }, undefined, 2)}\n`);
      } else {
        for (const line of reportLines(runReport, runs.length - 1)) io.stdout.write(`${line}\n`);
        if (typeof html === "string") io.stdout.write(`\nThe page is in ${html}\n`);
      }
      return ExitCode.ok;
    } finally {
      file.close();
    }
  },
};

/** A path that is there is one; everything else is an id. */
function telemetryPathOf(
  run: string | undefined,
  telemetry: unknown,
): { readonly path: string; readonly wanted: string | undefined } {
  if (typeof telemetry === "string") return { path: telemetry, wanted: run };
  return run !== undefined && existsSync(run) ? { path: run, wanted: undefined } : { path: ".", wanted: run };
}

/** Who names a folder that is not there means no id, and must not be told of the folder he is in alone. */
function runNotFound(run: string, cause: unknown): unknown {
  if (!(cause instanceof ConfigError)) return cause;
  return wrong(run, "there is no such folder or file, and no telemetry here to look in for a run of that id");
}

/** The latest, or the one that was asked for. */
function chosen(runs: readonly ListedRun[], wanted: string | undefined, path: string): ListedRun {
  const latest = runs.at(-1);
  if (latest === undefined) throw wrong(path, "there are no events in it");
  if (wanted === undefined) return latest;
  const exact = runs.find(({ runId }) => runId === wanted);
  const [first, second] = runs.filter(({ runId }) => runId.startsWith(wanted));
  if (exact !== undefined) return exact;
  const ids = runs
    .slice(-5)
    .map(({ runId }) => plainText(runId))
    .join(", ");
  if (first === undefined)
    throw wrong(
      path,
      `there is no run ${JSON.stringify(wanted)}; the latest ${runs.length === 1 ? "is" : "are"} ${ids}`,
    );
  if (second !== undefined) throw wrong(path, `several runs begin with ${JSON.stringify(wanted)}; say more of its id`);
  return first;
}

function reportLines({ summary, skipped }: RunReport, otherRuns: number): readonly string[] {
  const lines = [...headLines(summary, skipped, otherRuns), "", ...figureLines(summary)];
  const hosts = summary.hosts
    .slice(0, ROWS_MAX)
    .map(row => [
      plainText(row.host),
      plainText(row.role),
      countOf(row.calls),
      countOf(row.outcomes.cached),
      countOf(row.outcomes.failed + row.outcomes.throttled),
      countOf(row.outcomes.refused),
      percentOf(row.attempts === 0 ? 0 : (row.answers429 + row.answers503) / row.attempts),
      durationOf(row.delayMs.p50),
      durationOf(row.delayMs.p95),
    ]);
  const lanes = summary.lanes
    .slice(0, ROWS_MAX)
    .map(row => [
      plainText(row.key),
      plainText(row.role),
      countOf(row.acquired),
      countOf(row.blocked),
      countOf(row.headSkipped),
      row.multiplier === 1 && row.leastMultiplier === 1
        ? ""
        : `${row.multiplier.toFixed(2)} (least ${row.leastMultiplier.toFixed(2)})`,
    ]);
  const header = ["host", "role", "calls", "cached", "failed", "refused", "429/503", "wait p50", "p95"];
  if (hosts.length > 0) lines.push("", ...tableLines(header, hosts, summary.hosts.length));
  const budgets = ["budget", "role", "acquired", "blocked", "free HEADs", "AIMD"];
  if (lanes.length > 0) lines.push("", ...tableLines(budgets, lanes, summary.lanes.length));
  return lines;
}

function headLines(summary: RunSummary, skipped: RunReport["skipped"], otherRuns: number): readonly string[] {
  const { runId, program, version, startedMs, durationMs, hasEnded, dropped } = summary;
  const name = program === undefined ? "run" : `${plainText(program)} ${plainText(version ?? "")}`.trim();
  return [
    `${plainText(runId)}: ${name}, ${momentOf(startedMs)} UTC, for ${durationOf(durationMs)}${hasEnded ? "" : " so far"}`,
    ...(otherRuns > 0 ? [`${countOf(otherRuns)} more in the same place: name one by its id`] : []),
    ...(dropped > 0
      ? [`warning: ${countOf(dropped)} events were dropped; what is counted is less than what happened`]
      : []),
    ...(skipped.unreadable > 0 ? [`warning: ${countOf(skipped.unreadable)} lines could not be read`] : []),
    ...(skipped.unknown > 0
      ? [`warning: ${countOf(skipped.unknown)} events are of types that this version does not know`]
      : []),
  ];
}

function figureLines(summary: RunSummary): readonly string[] {
  const { calls, outcomes, cache, throttles, delayMs, limiter, breaker, topByDelay, topByBlocks } = summary;
  const reasons = Object.entries(breaker.opensByReason).filter(([, count]) => count > 0);
  const { succeeded, failed, successRate } = breaker.afterOpen;
  const rows: readonly (readonly [string, string])[] = [
    [
      "calls",
      `${countOf(calls)}: ${Object.entries(outcomes)
        .map(([outcome, count]) => `${countOf(count)} ${outcome}`)
        .join(", ")}`,
    ],
    [
      "cache",
      `${percentOf(cache.hitRate)} hits (${countOf(cache.hits)}, ${countOf(cache.stale)} of them stale), ${countOf(cache.revalidated)} revalidated, ${countOf(cache.coalesced)} coalesced`,
    ],
    [
      "429/503",
      `${percentOf(throttles.rate)} of ${countOf(throttles.attempts)} attempts: ${countOf(throttles.answers429)} and ${countOf(throttles.answers503)}`,
    ],
    [
      "waits",
      `p50 ${durationOf(delayMs.p50)}, p95 ${durationOf(delayMs.p95)}, longest ${durationOf(delayMs.max)}${delayMs.isExact ? "" : " (percentiles within one per cent)"}`,
    ],
    [
      "limiter",
      `${countOf(limiter.acquired)} acquired, ${countOf(limiter.blocked)} blocked, ${countOf(limiter.headSkipped)} HEADs free`,
    ],
    [
      "breakers",
      `${countOf(breaker.denied)} denied, ${countOf(breaker.opens)} opened (${breaker.opensPerHour.toFixed(1)} an hour)${reasons.length > 0 ? `: ${reasons.map(([reason, count]) => `${countOf(count)} ${reason}`).join(", ")}` : ""}`,
    ],
    [
      "after opening",
      succeeded + failed === 0
        ? "nothing tried"
        : `${percentOf(successRate)} well (${countOf(succeeded)} of ${countOf(succeeded + failed)})`,
    ],
    ["time saved", durationOf(breaker.timeSavedMs)],
    [
      "most delayed",
      topByDelay
        .slice(0, 3)
        .map(({ host, value }) => `${plainText(host)} ${durationOf(value)}`)
        .join(", ") || "nobody",
    ],
    [
      "most blocked",
      topByBlocks
        .slice(0, 3)
        .map(({ host, value }) => `${plainText(host)} ${countOf(value)}`)
        .join(", ") || "nobody",
    ],
  ];
  return rows.map(([name, words]) => `${name.padEnd(15)}${words}`);
}

function tableLines(header: readonly string[], rows: readonly (readonly string[])[], all: number): readonly string[] {
  const lines = formatTable(header, rows).trimEnd().split("\n");
  return all > rows.length ? [...lines, `… and ${countOf(all - rows.length)} more; --json has them all`] : lines;
}

/** All of it, or what was there before. */
async function writeAtomically(path: string, text: string): Promise<void> {
  const unnamed = `${path}.${randomUUID()}`;
  try {
    await writeFile(unnamed, text, { flag: "wx" });
    await rename(unnamed, path);
  } catch (cause) {
    await rm(unnamed, { force: true });
    throw new ConfigError(
      [
        {
          where: "--html",
          path: "",
          message: `${path} cannot be written: ${cause instanceof Error ? cause.message : cause}`,
        },
      ],
      { cause },
    );
  }
}

function wrong(where: string, message: string): ConfigError {
  return new ConfigError([{ where, path: "", message }]);
}
