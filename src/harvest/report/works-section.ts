import { html, type Markup } from "../../telemetry/report/markup.ts";
import { countOf, durationOf, percentOf } from "../../telemetry/report/number-text.ts";
import { table } from "../../telemetry/report/tables.ts";
import type { RunSummary } from "../../telemetry/summary/run-summary.ts";
import type { WorksReport } from "./works-report.ts";

/** The works of a manifest for the HTML report of a run. All texts of the manifest are escaped. */
export function worksSection(
  { works, reasons, files, yields, fileKinds, lastFailed }: WorksReport,
  run: Pick<RunSummary, "hosts">,
): Markup {
  const settled = works.done + works.failed;
  const figures: readonly (readonly [string, string])[] = [
    [countOf(works.total), `works, ${countOf(works.pending)} unfinished`],
    [percentOf(settled === 0 ? 0 : works.done / settled), `of ${countOf(settled)} settled works have a file`],
    [countOf(files.count), `files, ${bytesOf(files.bytes)}`],
    [countOf(deferredOf(run)), "requests deferred by a rate limit, an open circuit or a cooldown"],
  ];
  return html`<section><h2>Works</h2><p class="note">The whole manifest, over all its runs.</p>
<ul class="tiles">${figures.map(([figure, label]) => html`<li><b>${figure}</b><span>${label}</span></li>`)}</ul>
${table(
  "Works by result",
  ["state", "reason", "works"],
  reasons.map(({ state, reason, works: count }) => [state, reason, countOf(count)]),
)}
${table(
  "Files by role and type",
  ["role", "type", "files", "size", "largest"],
  fileKinds.map(each => [each.role, each.mediaType, countOf(each.files), bytesOf(each.bytes), bytesOf(each.maxBytes)]),
)}
${table(
  "Resolvers: works asked about, works whose article came from them, and their requests",
  ["resolver", "works asked", "works stored", "yield", "queries", "time", "downloads", "time", "received"],
  yields.map(each => [
    each.resolver,
    countOf(each.asked),
    countOf(each.stored),
    percentOf(each.asked === 0 ? 0 : each.stored / each.asked),
    countOf(each.queries),
    durationOf(each.queryMs),
    countOf(each.downloads),
    durationOf(each.downloadMs),
    bytesOf(each.bytes),
  ]),
)}
${table(
  "Requests of this run by host: calls do not include deferred requests",
  ["host", "role", "calls", "deferred", "wait p50", "wait p95"],
  run.hosts.map(({ host, role, calls, outcomes, delayMs }) => [
    ...[host, role, countOf(calls - outcomes.refused), countOf(outcomes.refused)],
    ...[durationOf(delayMs.p50), durationOf(delayMs.p95)],
  ]),
)}
${
  lastFailed.length === 0
    ? undefined
    : table(
        `The last ${countOf(lastFailed.length)} works without a file`,
        ["work", "reason", "message"],
        lastFailed.map(({ key, reason, message = "" }) => [key, reason, message]),
      )
}</section>`;
}

/** Requests that the hub refused. Their works were queued again. */
function deferredOf({ hosts }: Pick<RunSummary, "hosts">): number {
  return hosts.reduce((sum, { outcomes }) => sum + outcomes.refused, 0);
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

function bytesOf(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // 999.5 kB would be rounded to "1000 kB".
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 999.5 ? countOf(value) : value.toPrecision(3)} ${UNITS[unit]}`;
}
