import { join } from "node:path";
import type { Ledger } from "../../testing/internet/ledger.ts";
import { formatBytes, formatCount, formatDuration } from "../output/format.ts";
import { formatTable } from "../output/table.ts";
import type { ScheduleBound } from "./fastest-schedule.ts";
import type { SessionOutcome } from "./run-session.ts";

/** What came, beside what there is. */
export interface FileComparison {
  /** Works of which there is a copy that can be had. */
  readonly due: number;
  /** Those whose file is the one that its server holds, byte for byte. */
  readonly right: number;
  readonly missing: readonly string[];
}

export interface DemoFacts {
  readonly outcome: SessionOutcome;
  readonly delivery: FileComparison;
  readonly ledger: Ledger;
  readonly bound: ScheduleBound | undefined;
  /** Undefined when nothing is kept. */
  readonly folder: string | undefined;
}

export function reportFile(folder: string): string {
  return join(folder, "report.html");
}

export function demoText(facts: DemoFacts, isJson: boolean): string {
  const { outcome, delivery, ledger, bound, folder } = facts;
  const { report, tally, elapsedMs } = outcome;
  const total429 = sum(ledger, host => host.statuses["429"] ?? 0);
  if (isJson) {
    const { requests, rejected, blocked } = ledger;
    const servers = { requests, rejected, blocked, throttledByScript: total429 - rejected };
    const { putOff, opened, cached } = tally;
    const all = {
      works: report.works,
      files: report.files,
      delivery,
      servers,
      putOff,
      opened,
      cached,
      bound,
      elapsedMs,
    };
    return `${JSON.stringify({ ...all, folder }, undefined, 2)}\n`;
  }
  const rows = [
    ["works", `${report.works.done} done, ${report.works.failed} without a file`],
    ["files", `${report.files.count}, ${formatBytes(report.files.bytes)}`],
    [
      "checked",
      `${delivery.right} of ${delivery.due} that can be had are here, byte for byte as their servers hold them`,
    ],
    ["requests", `${ledger.requests} reached ${formatCount(Object.keys(ledger.hosts).length, "host")}`],
    ["waits", `${formatCount(tally.putOff, "time")} a request was put off because its host was full or cut off`],
    ["opens", `${formatCount(tally.opened, "time")} a host that failed was cut off for a while`],
    [
      "429s",
      `${rejections(ledger)} for a limit exceeded; ${total429 - ledger.rejected} that the script had a host say`,
    ],
    ["took", formatDuration(elapsedMs)],
    ...(bound === undefined ? [] : [["bound", boundText(bound)]]),
  ];
  const why = report.reasons.filter(({ state }) => state === "failed");
  const failed =
    why.length === 0
      ? ""
      : `\n${formatTable(
          ["without a file because", "works"],
          why.map(row => [row.reason, String(row.works)]),
        )}`;
  const missing = delivery.missing.length === 0 ? "" : `\nMissing: ${delivery.missing.join(", ")}\n`;
  const place =
    folder === undefined
      ? "\nThe files are gone again; --keep keeps them, with the manifest and a page of charts.\n"
      : `\nThe files and the manifest are in ${folder}\nThe page of charts is ${reportFile(folder)}\n` +
        `docstokg status --out ${folder}\ndocstokg report ${folder}\n`;
  return `${formatTable(["", ""], rows).trimStart()}${failed}${missing}${place}`;
}

function boundText({ budget, rates, requests, fastestMs, tookMs, runMs }: ScheduleBound): string {
  return (
    `${formatCount(requests, "request")} of ${budget} at ${rates} take ${seconds(fastestMs)} at best, so that no run could ` +
    `be faster; here they took ${seconds(tookMs)}${percentAbove(tookMs, fastestMs)}, and the last request of all went after ${seconds(runMs)}`
  );
}

function percentAbove(ms: number, fastestMs: number): string {
  return fastestMs > 0 ? ` (${((ms / fastestMs - 1) * 100).toFixed(1)} % more)` : "";
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** `1 (api.example.org)`. */
function rejections({ rejected, hosts }: Ledger): string {
  const at = Object.entries(hosts).flatMap(([host, book]) => (book.rejected > 0 ? [host] : []));
  return at.length === 0 ? String(rejected) : `${rejected} (${at.join(", ")})`;
}

function sum(ledger: Ledger, count: (host: Ledger["hosts"][string]) => number): number {
  return Object.values(ledger.hosts).reduce((total, host) => total + count(host), 0);
}
