import { type OpenReasonKind, REASONS } from "../breaker-openings.ts";
import { CALL_OUTCOMES, type CallOutcome } from "../call-outcome.ts";
import type { RunSummary } from "../summary/run-summary.ts";
import { CHARTED_HOSTS_MAX, type RunTimeline } from "../summary/timeline.ts";
import { delayChart } from "./delay-chart.ts";
import { hostStrip } from "./host-strip.ts";
import { html, Markup } from "./markup.ts";
import { clockOf, countOf, durationOf, momentOf, percentOf, perHourText, rateOf } from "./number-text.ts";
import { type Axis, axisLabels, OUTCOME_LABELS, type OutcomeCounts, stepsChart } from "./steps-chart.ts";
import { STYLE } from "./style.ts";
import { decisionsTable, hostsTable, keysTable, stepsTable } from "./tables.ts";

/** Counts of events that could not be read from the telemetry file. */
export interface SkippedCounts {
  /** Lines or rows that are not valid events. */
  readonly unreadable: number;
  /** Events of types that this version does not know. */
  readonly unknown: number;
}

/** Further hosts are only in the table. */
const STRIPS_MAX = 16;

const REASON_LABELS: Readonly<Record<OpenReasonKind, string>> = {
  failures: "consecutive failures",
  "retry-after": "Retry-After from the server",
  "rolling-window": "failures in the rolling window",
  "slow-calls": "slow calls in the rolling window",
  "cli-open": "operator command",
};

/**
 * One HTML page without scripts and without references to other files. All texts from the file are escaped.
 * @param section HTML that is added after the figures
 */
export function reportPage(summary: RunSummary, timeline: RunTimeline, skipped: SkippedCounts, section = ""): string {
  const { fromMs, stepMs } = timeline;
  const axis: Axis = { fromMs, stepMs, steps: Math.max(1, timeline.hosts[0]?.waitMs.length ?? 1) };
  const overall = summed(timeline);
  const strips = timeline.hosts.slice(0, STRIPS_MAX);
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer"><title>Run ${summary.runId}</title><style>${new Markup(STYLE)}</style></head>
<body>${head(summary, skipped)}<main>${tiles(summary)}${new Markup(section)}
<section><h2>Calls over time</h2><p class="note">Calls by outcome, one bar per ${durationOf(stepMs)}. Times are UTC.</p>${legend()}${stepsChart(overall, axis)}
<details><summary>The same as a table</summary>${stepsTable(overall, axis)}</details></section>
<section><h2>Hosts over time</h2><p class="note">Calls, longest wait (scaled per host), and periods with an open circuit or a cooldown. ${leftOut(summary, timeline)}</p>${legend()}${bandLegend()}${strips.map(host => hostStrip(host, axis))}<div class="host"><div></div>${axisLabels(axis)}</div></section>
<section><h2>Wait times</h2><p class="note">Time in the queue before each attempt, and waits that ended without one: for rate limits, concurrency slots and open circuits together. ${
    summary.delayMs.isExact ? "" : "Percentiles are accurate to 1 %."
  }</p>${delayChart(summary.hosts)}</section>
<div class="pair">${openings(summary)}${refusals(summary)}</div>
<section><h2>Hosts and roles</h2>${hostsTable(summary.hosts)}</section>
<section><h2>Rate limits</h2>${keysTable(summary.keys)}</section>
<section><h2>What decided</h2>${decisionsTable(summary.decisions)}</section></main>
<footer>${summary.program ?? "A program"} with docstokg ${summary.version ?? ""} · policy ${
    summary.configHashes.length === 0 ? "unknown" : summary.configHashes.join(", ")
  } · ${countOf(summary.events)} events</footer></body></html>
`;
  return page.text;
}

/** Which hosts have no chart. */
function leftOut({ hosts }: RunSummary, timeline: RunTimeline): string {
  if (timeline.hosts.length <= STRIPS_MAX) return "";
  const count = new Set(hosts.map(({ host }) => host)).size;
  const shown = `Shown are the ${STRIPS_MAX} charts with the most calls; the run has ${countOf(count)} hosts.`;
  return count > CHARTED_HOSTS_MAX
    ? `${shown} Only the first ${CHARTED_HOSTS_MAX} hosts have a chart of their own.`
    : shown;
}

function head(summary: RunSummary, skipped: SkippedCounts): Markup {
  const { runId, program, startedMs, endedMs, durationMs, hasEnded, dropped } = summary;
  const warnings = [
    dropped > 0
      ? `${countOf(dropped)} events were dropped, because the sink was slower than the events or a write failed: all counts below are too low.`
      : "",
    hasEnded ? "" : "This run has no end event: it is still running, or it was killed.",
    skipped.unreadable > 0 ? `${countOf(skipped.unreadable)} lines of the file could not be read.` : "",
    skipped.unknown > 0 ? `${countOf(skipped.unknown)} events are of types that this version does not know.` : "",
  ].filter(text => text !== "");
  return html`<header><h1>${program ?? "Run"} <span class="soft">for ${durationOf(durationMs)}</span></h1>
<p class="soft">${momentOf(startedMs)} to ${
    momentOf(startedMs).slice(0, 10) === momentOf(endedMs).slice(0, 10) ? clockOf(endedMs, 1000) : momentOf(endedMs)
  } UTC · run <code>${runId}</code></p>${warnings.map(text => html`<p class="warn">${text}</p>`)}</header>`;
}

function tiles({ calls, cache, throttles, delayMs, breaker, limiter, outcomes, durationMs }: RunSummary): Markup {
  const tried = breaker.afterOpen.succeeded + breaker.afterOpen.failed;
  const figures: readonly (readonly [string, string])[] = [
    [countOf(calls), `calls, ${rateOf(calls, durationMs)}`],
    [percentOf(cache.hitRate), `from the cache, ${countOf(cache.revalidated)} revalidated`],
    [durationOf(delayMs.p95), `p95 wait (median ${durationOf(delayMs.p50)})`],
    [
      percentOf(throttles.rate),
      `of ${countOf(throttles.attempts)} attempts got a 429 (${countOf(throttles.answers429)}) or 503 (${countOf(throttles.answers503)})`,
    ],
    [countOf(outcomes.failed), "calls failed"],
    [
      countOf(breaker.denied + limiter.blocked),
      `refused locally: ${countOf(breaker.denied)} by circuit breakers, ${countOf(limiter.blocked)} by rate limits`,
    ],
    [
      countOf(breaker.opens),
      `openings, ${perHourText(breaker.opensPerHour)} per hour${tried > 0 ? `; ${percentOf(breaker.afterOpen.successRate)} of first calls afterwards succeeded` : ""}`,
    ],
    [durationOf(breaker.timeSavedMs), "saved by not calling hosts with an open circuit or a cooldown"],
  ];
  return html`<ul class="tiles">${figures.map(([figure, label]) => html`<li><b>${figure}</b><span>${label}</span></li>`)}</ul>`;
}

function openings({ breaker: { opens, opensByReason, afterOpen } }: RunSummary): Markup {
  const largest = Math.max(1, ...REASONS.map(reason => opensByReason[reason]));
  const rows = REASONS.filter(reason => opensByReason[reason] > 0).map(
    reason =>
      html`<div>${REASON_LABELS[reason]}</div><div class="track"><div class="${reason === "failures" ? "open" : "cooldown"}" style="width:${(opensByReason[reason] / largest) * 100}%"></div></div><div>${countOf(opensByReason[reason])}</div>`,
  );
  const after = `First call after an opening: ${countOf(afterOpen.succeeded)} succeeded, ${countOf(afterOpen.failed)} failed.`;
  return html`<section><h2>Why circuits opened and cooldowns began</h2><p class="note">${
    opens === 0
      ? "No circuit opened, and no cooldown began."
      : afterOpen.succeeded + afterOpen.failed > 0
        ? after
        : "No call was made after an opening yet."
  }</p><div class="rows">${rows}</div></section>`;
}

function refusals({ breaker, limiter, topByBlocks }: RunSummary): Markup {
  const all = breaker.denied + limiter.blocked;
  const largest = Math.max(1, ...topByBlocks.map(({ value }) => value));
  return html`<section><h2>Calls refused locally</h2><p class="note">${
    all === 0
      ? "None."
      : `${countOf(breaker.denied)} calls because a circuit was open or the host was in cooldown, ${countOf(limiter.blocked)} attempts because they would have waited longer than max_delay_ms or maxWaitMs.`
  }</p>${
    topByBlocks.length === 0
      ? undefined
      : html`<h3>By rate limits</h3><div class="rows">${topByBlocks.map(({ host, value }) => html`<div>${host}</div><div class="track"><div class="refused" style="width:${(value / largest) * 100}%"></div></div><div>${countOf(value)}</div>`)}</div>`
  }</section>`;
}

function legend(): Markup {
  return html`<ul class="legend">${CALL_OUTCOMES.map(outcome => html`<li><span class="key ${outcome}"></span>${OUTCOME_LABELS[outcome]}</li>`)}</ul>`;
}

function bandLegend(): Markup {
  const kinds = [
    ["open", "circuit open"],
    ["half_open", "half-open"],
    ["cooldown", "host in cooldown"],
  ] as const;
  return html`<ul class="legend">${kinds.map(([kind, label]) => html`<li><span class="key band ${kind}"></span>${label}</li>`)}</ul>`;
}

function summed({ hosts }: RunTimeline): OutcomeCounts {
  const steps = hosts[0]?.waitMs.length ?? 0;
  const sum = (outcome: CallOutcome) =>
    Array.from({ length: steps }, (_, step) =>
      hosts.reduce((all, host) => all + (host.outcomes[outcome][step] ?? 0), 0),
    );
  return Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, sum(outcome)])) as unknown as OutcomeCounts;
}
