import { type OpenReasonKind, REASONS } from "../breaker-openings.ts";
import { CALL_OUTCOMES, type CallOutcome } from "../call-outcome.ts";
import type { RunSummary } from "../summary/run-summary.ts";
import type { RunTimeline } from "../summary/timeline.ts";
import { delayChart } from "./delay-chart.ts";
import { hostStrip } from "./host-strip.ts";
import { html, Markup } from "./markup.ts";
import { clockOf, countOf, durationOf, momentOf, percentOf } from "./number-text.ts";
import { type Axis, type Counts, clock, OUTCOME_LABELS, stepsChart } from "./steps-chart.ts";
import { STYLE } from "./style.ts";
import { hostsTable, keysTable, stepsTable } from "./tables.ts";

/** What else a reader should know: of the file, not of the run. */
export interface SkippedCounts {
  readonly unreadable: number;
  readonly unknown: number;
}

/** Hosts beyond these are in the table only. */
const STRIPS_MAX = 16;

const REASON_LABELS: Readonly<Record<OpenReasonKind, string>> = {
  failures: "failures in a row",
  "retry-after": "the server asked for a pause",
  "rolling-window": "failures within a window",
  "cli-open": "an operator",
};

/** One page that needs nothing else: no script, no network. Everything that was read is escaped. */
export function reportPage(summary: RunSummary, timeline: RunTimeline, skipped: SkippedCounts): string {
  const { fromMs, stepMs } = timeline;
  const axis: Axis = { fromMs, stepMs, steps: Math.max(1, timeline.hosts[0]?.waitMs.length ?? 1) };
  const overall = summed(timeline);
  const strips = timeline.hosts.slice(0, STRIPS_MAX);
  const more = timeline.hosts.length - strips.length;
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer"><title>Run ${summary.runId}</title><style>${new Markup(STYLE)}</style></head>
<body>${head(summary, skipped)}<main>${tiles(summary)}
<section><h2>Calls over time</h2><p class="note">How they ended, in steps of ${durationOf(stepMs)}. Times are UTC.</p>${legend()}${stepsChart(overall, axis)}
<details><summary>The same as a table</summary>${stepsTable(overall, axis)}</details></section>
<section><h2>Hosts over time</h2><p class="note">Calls, the longest waits at the gate (to the scale of each host), and when a host was cut off. ${
    more > 0 ? `The ${STRIPS_MAX} with the most calls; ${countOf(more)} more in the table below.` : ""
  }</p>${legend()}${bandLegend()}${strips.map(host => hostStrip(host, axis, summary))}<div class="host"><div></div>${clock(axis)}</div></section>
<section><h2>Waits at the gate</h2><p class="note">Of calls that were sent, for rates and slots together. ${
    summary.delayMs.isExact ? "" : "Percentiles are within one per cent."
  }</p>${delayChart(summary.hosts)}</section>
<div class="pair">${openings(summary)}${refusals(summary)}</div>
<section><h2>Hosts and roles</h2>${hostsTable(summary.hosts)}</section>
<section><h2>Budgets</h2>${keysTable(summary.keys)}</section></main>
<footer>${summary.program ?? "A program"} with docstokg ${summary.version ?? ""} · policy ${
    summary.configHashes.length === 0 ? "unknown" : summary.configHashes.join(", ")
  } · ${countOf(summary.events)} events</footer></body></html>
`;
  return page.text;
}

function head(summary: RunSummary, skipped: SkippedCounts): Markup {
  const { runId, program, startedMs, endedMs, durationMs, hasEnded, dropped } = summary;
  const warnings = [
    dropped > 0
      ? `${countOf(dropped)} events were dropped because they came faster than they could be written: what is counted here is less than what happened.`
      : "",
    hasEnded ? "" : "The run has not come to its end: it is still going on, or was stopped in the middle.",
    skipped.unreadable > 0 ? `${countOf(skipped.unreadable)} lines of the file could not be read.` : "",
    skipped.unknown > 0 ? `${countOf(skipped.unknown)} events are of types that this version does not know.` : "",
  ].filter(text => text !== "");
  return html`<header><h1>${program ?? "Run"} <span class="soft">for ${durationOf(durationMs)}</span></h1>
<p class="soft">${momentOf(startedMs)} to ${
    momentOf(startedMs).slice(0, 10) === momentOf(endedMs).slice(0, 10) ? clockOf(endedMs, 1000) : momentOf(endedMs)
  } UTC · run <code>${runId}</code></p>${warnings.map(text => html`<p class="warn">${text}</p>`)}</header>`;
}

function tiles({ calls, cache, throttles, delayMs, breaker, limiter, outcomes, durationMs }: RunSummary): Markup {
  const perMinute = durationMs > 0 ? (calls * 60_000) / durationMs : 0;
  const tried = breaker.afterOpen.succeeded + breaker.afterOpen.failed;
  const figures: readonly (readonly [string, string])[] = [
    [countOf(calls), `calls, ${countOf(perMinute)} a minute`],
    [percentOf(cache.hitRate), `from the cache, ${countOf(cache.revalidated)} revalidated`],
    [
      durationOf(delayMs.p95),
      `is the longest wait of 95 % of the calls; half of them waited ${durationOf(delayMs.p50)} at most`,
    ],
    [
      percentOf(throttles.rate),
      `of ${countOf(throttles.attempts)} attempts got a 429 (${countOf(throttles.answers429)}) or 503 (${countOf(throttles.answers503)})`,
    ],
    [countOf(outcomes.failed), "calls failed"],
    [
      countOf(breaker.denied + limiter.blocked),
      `refused by us: ${countOf(breaker.denied)} by breakers, ${countOf(limiter.blocked)} by limits`,
    ],
    [
      countOf(breaker.opens),
      `breaks, ${breaker.opensPerHour.toFixed(breaker.opensPerHour < 10 ? 1 : 0)} an hour${tried > 0 ? `; ${percentOf(breaker.afterOpen.successRate)} well afterwards` : ""}`,
    ],
    [durationOf(breaker.timeSavedMs), "saved by not calling what was down"],
  ];
  return html`<ul class="tiles">${figures.map(([figure, label]) => html`<li><b>${figure}</b><span>${label}</span></li>`)}</ul>`;
}

function openings({ breaker: { opens, opensByReason, afterOpen } }: RunSummary): Markup {
  const most = Math.max(1, ...REASONS.map(reason => opensByReason[reason]));
  const rows = REASONS.filter(reason => opensByReason[reason] > 0).map(
    reason =>
      html`<div>${REASON_LABELS[reason]}</div><div class="track"><div class="${reason === "failures" ? "open" : "cooldown"}" style="width:${(opensByReason[reason] / most) * 100}%"></div></div><div>${countOf(opensByReason[reason])}</div>`,
  );
  const after = `The first call afterwards went well ${countOf(afterOpen.succeeded)} times, and failed ${countOf(afterOpen.failed)} times.`;
  return html`<section><h2>Why hosts were cut off</h2><p class="note">${
    opens === 0 ? "None was." : afterOpen.succeeded + afterOpen.failed > 0 ? after : "None was tried again yet."
  }</p><div class="rows">${rows}</div></section>`;
}

function refusals({ breaker, limiter, topByBlocks }: RunSummary): Markup {
  const all = breaker.denied + limiter.blocked;
  const most = Math.max(1, ...topByBlocks.map(({ value }) => value));
  return html`<section><h2>What we refused ourselves</h2><p class="note">${
    all === 0
      ? "Nothing."
      : `${countOf(breaker.denied)} calls because their host was cut off, ${countOf(limiter.blocked)} because their turn would have come too late.`
  }</p>${
    topByBlocks.length === 0
      ? undefined
      : html`<h3>By limits</h3><div class="rows">${topByBlocks.map(({ host, value }) => html`<div>${host}</div><div class="track"><div class="refused" style="width:${(value / most) * 100}%"></div></div><div>${countOf(value)}</div>`)}</div>`
  }</section>`;
}

function legend(): Markup {
  return html`<ul class="legend">${CALL_OUTCOMES.map(outcome => html`<li><span class="key ${outcome}"></span>${OUTCOME_LABELS[outcome]}</li>`)}</ul>`;
}

function bandLegend(): Markup {
  const kinds = [
    ["open", "circuit open"],
    ["half_open", "on trial"],
    ["cooldown", "whole host cooling down"],
  ] as const;
  return html`<ul class="legend">${kinds.map(([kind, label]) => html`<li><span class="key band ${kind}"></span>${label}</li>`)}</ul>`;
}

function summed({ hosts }: RunTimeline): Counts {
  const steps = hosts[0]?.waitMs.length ?? 0;
  const sum = (outcome: CallOutcome) =>
    Array.from({ length: steps }, (_, step) =>
      hosts.reduce((all, host) => all + (host.outcomes[outcome][step] ?? 0), 0),
    );
  return Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, sum(outcome)])) as unknown as Counts;
}
