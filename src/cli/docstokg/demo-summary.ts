import { join } from "node:path";
import type { Ledger } from "../../testing/internet/ledger.ts";
import { formatDuration } from "../output/duration.ts";
import { formatBytes, formatCount } from "../output/format.ts";
import { formatPairs, formatTable } from "../output/table.ts";
import type { ScheduleBound } from "./fastest-schedule.ts";
import type { FileComparison } from "./file-comparison.ts";
import { shellWord } from "./path-flags.ts";
import type { SessionOutcome } from "./run-session.ts";

export interface DemoFacts {
  readonly outcome: SessionOutcome;
  readonly comparison: FileComparison;
  readonly ledger: Ledger;
  readonly bound: ScheduleBound | undefined;
  /** Undefined if the output folder is deleted. */
  readonly folder: string | undefined;
}

export function reportFile(folder: string): string {
  return join(folder, "report.html");
}

export function demoJson({ outcome, comparison, ledger, bound, folder }: DemoFacts): string {
  const { report, counts, elapsedMs } = outcome;
  const { requests, rejected, blocked } = ledger;
  const { deferred, opened, cached } = counts;
  const servers = { requests, rejected, blocked, throttledByScript: throttledByScript(ledger) };
  const { works, files } = report;
  const facts = { works, files, comparison, servers, deferred, opened, cached, bound, elapsedMs, folder };
  return `${JSON.stringify(facts, undefined, 2)}\n`;
}

export function demoText({ outcome, comparison, ledger, bound, folder }: DemoFacts, columns?: number): string {
  const { report, counts, elapsedMs } = outcome;
  const { expected, matching, missing } = comparison;
  const rows = [
    ["works", `${report.works.done} done, ${report.works.failed} without a file`],
    ["files", `${report.files.count}, ${formatBytes(report.files.bytes)}`],
    ["checked", `${matching} of ${expected} available files downloaded, identical to the servers' copies`],
    ["requests", `${ledger.requests} requests to ${formatCount(Object.keys(ledger.hosts).length, "host")}`],
    [
      "deferrals",
      `${formatCount(counts.deferred, "time")} a request was deferred by a rate limit, an open circuit or a cooldown`,
    ],
    ["circuits", `${formatCount(counts.opened, "circuit")} opened after failures`],
    ["duration", formatDuration(elapsedMs)],
    ...(bound === undefined ? [] : boundRows(bound, elapsedMs)),
    [
      "rejected",
      `${rejections(ledger)} for an exceeded rate limit; the simulated throttling answered ` +
        `${formatCount(throttledByScript(ledger), "request")} with 429`,
    ],
  ] as const;
  const failed = report.reasons.filter(({ state }) => state === "failed");
  const cells = failed.map(row => [row.reason, String(row.works)]);
  return [
    formatPairs(rows, { columns }),
    failed.length === 0 ? "" : `\n${formatTable(["reason without a file", "works"], cells, { columns })}`,
    missing.length === 0 ? "" : `\nMissing: ${missing.join(", ")}\n`,
    folderText(folder),
  ].join("");
}

function folderText(folder: string | undefined): string {
  if (folder === undefined) return "\nThe output folder is deleted at the end; --keep keeps it, with an HTML report.\n";
  return (
    `\nFiles and manifest: ${folder}\nHTML report: ${reportFile(folder)}\n` +
    `docstokg status --out ${shellWord(folder)}\ndocstokg report ${shellWord(folder)}\n`
  );
}

/** The time that the rate limits require, and how much longer the run took. */
function boundRows(
  { budget, rates, requests, fastestMs, tookMs }: ScheduleBound,
  elapsedMs: number,
): readonly (readonly [name: string, value: string])[] {
  if (fastestMs === 0) return [["minimum", "none: the run had too few requests to reach a rate limit"]];
  const ratio = (ms: number) => (ms / fastestMs).toFixed(2);
  return [
    [
      "minimum",
      `${seconds(fastestMs)}: ${budget} allows ${rates}, so its ${requests} requests take at least this time`,
    ],
    [
      "ratio",
      `${ratio(elapsedMs)} times the minimum for the whole run, which also waits for the simulated outage; ` +
        `${ratio(tookMs)} times for these ${requests} requests, sent in ${seconds(tookMs)}`,
    ],
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** `1 request (api.example.org)`: how many requests exceeded a server's limit, and where. */
function rejections({ rejected, hosts }: Ledger): string {
  const names = Object.entries(hosts).flatMap(([host, counts]) => (counts.rejected > 0 ? [host] : []));
  const count = formatCount(rejected, "request");
  return names.length === 0 ? count : `${count} (${names.join(", ")})`;
}

/** The 429 responses that the scenario causes. */
function throttledByScript({ rejected, hosts }: Ledger): number {
  const all429 = Object.values(hosts).reduce((total, { statuses }) => total + (statuses["429"] ?? 0), 0);
  return all429 - rejected;
}
