import { CALL_OUTCOMES } from "../call-outcome.ts";
import type { DecisionSummary, HostSummary, KeySummary } from "../summary/run-summary.ts";
import { html, type Markup } from "./markup.ts";
import { countOf, durationOf, percentOf } from "./number-text.ts";
import { type Axis, OUTCOME_LABELS, type OutcomeCounts, timeOn } from "./steps-chart.ts";

/** Further rows are only in `--json`. */
const ROWS_MAX = 200;
const STEP_ROWS_MAX = 40;

export function hostsTable(rows: readonly HostSummary[]): Markup {
  const outcomes = ["answered", "cached", "429/503", "failed", "refused", "aborted"];
  const head = [
    "host",
    "role",
    "calls",
    ...outcomes,
    "attempts",
    "429/503 of all attempts",
    "wait p50",
    "wait p95",
    "longest wait",
  ];
  const cells = rows.map(({ host, role, calls, outcomes: ended, attempts, answers429, answers503, delayMs }) => [
    host,
    role,
    countOf(calls),
    ...CALL_OUTCOMES.map(outcome => countOf(ended[outcome])),
    countOf(attempts),
    percentOf(attempts === 0 ? 0 : (answers429 + answers503) / attempts),
    durationOf(delayMs.p50),
    durationOf(delayMs.p95),
    durationOf(delayMs.max),
  ]);
  return table("Calls by the host that ended them, attempts by the host they were sent to", head, cells);
}

export function keysTable(rows: readonly KeySummary[]): Markup {
  const head = ["key", "role", "acquired", "refused", "aborted", "HEAD not counted", "AIMD multiplier", "lowest"];
  const cells = rows.map(({ key, role, acquired, blocked, aborted, headSkipped, multiplier, leastMultiplier }) => [
    key,
    role,
    ...[acquired, blocked, aborted, headSkipped].map(countOf),
    multiplier.toFixed(2),
    leastMultiplier.toFixed(2),
  ]);
  return table("Requests granted and refused by the limiter, by host or service", head, cells);
}

export function decisionsTable(rows: readonly DecisionSummary[]): Markup {
  const cells = rows.map(({ decidedBy, waits, waitMs, refusals }) => [
    decidedBy,
    countOf(waits),
    durationOf(waitMs),
    countOf(refusals),
  ]);
  return table(
    "Waits and refusals by the setting that decided",
    ["setting", "waits", "waited", "calls refused"],
    cells,
  );
}

/** The steps of the chart; several steps per row when there are many. */
export function stepsTable(counts: OutcomeCounts, axis: Axis): Markup {
  const { fromMs, stepMs, steps } = axis;
  const stepsPerRow = Math.ceil(steps / STEP_ROWS_MAX);
  const cells = Array.from({ length: Math.ceil(steps / stepsPerRow) }, (_, row) => {
    const from = row * stepsPerRow;
    const sums = CALL_OUTCOMES.map(outcome =>
      counts[outcome].slice(from, from + stepsPerRow).reduce((a, b) => a + b, 0),
    );
    return [timeOn(axis, fromMs + from * stepMs, stepMs), ...sums.map(countOf)];
  });
  return table(
    `Calls per ${durationOf(stepsPerRow * stepMs)}`,
    ["from", ...CALL_OUTCOMES.map(outcome => OUTCOME_LABELS[outcome])],
    cells,
  );
}

/** A table of texts; the first cell of a row is its heading. */
export function table(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): Markup {
  const left = rows.length - ROWS_MAX;
  return html`<div class="wide"><table class="${head[1] === "role" ? "roles" : ""}"><caption>${caption}${left > 0 ? `; ${countOf(left)} more rows in --json` : ""}</caption><thead><tr>${head.map(cell => html`<th scope="col">${cell}</th>`)}</tr></thead><tbody>${rows
    .slice(0, ROWS_MAX)
    .map(
      ([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map(cell => html`<td>${cell}</td>`)}</tr>`,
    )}</tbody></table></div>`;
}
