import type { HostSummary } from "../summary/run-summary.ts";
import { html, type Markup } from "./markup.ts";
import { durationOf } from "./number-text.ts";
import { round } from "./steps-chart.ts";

const ROWS_MAX = 20;
const WIDTH = 1000;

/** A bar from the median to p95 and a thin line to the longest wait, per host and role, on a logarithmic scale. */
export function delayChart(hosts: readonly HostSummary[]): Markup {
  const rows = hosts
    .filter(({ delayMs }) => delayMs.max > 0)
    .toSorted((a, b) => b.delayMs.p95 - a.delayMs.p95 || b.delayMs.max - a.delayMs.max)
    .slice(0, ROWS_MAX);
  if (rows.length === 0) return html`<p class="soft">No call had to wait.</p>`;
  const longest = Math.max(...rows.map(({ delayMs }) => delayMs.max));
  const x = (ms: number) => round((Math.log10(1 + ms) / Math.log10(1 + longest)) * WIDTH);
  const marks = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000].filter(ms => ms < longest);
  return html`<div class="rows">${rows.map(({ host, role, delayMs: { p50, p95, max } }) => {
    const label = `median ${durationOf(p50)}, 95 % within ${durationOf(p95)}, longest ${durationOf(max)}`;
    return html`<div>${host} <span class="soft">${role}</span></div><svg role="img" aria-label="${host} ${role}: ${label}" viewBox="0 0 ${WIDTH} 16" height="16" preserveAspectRatio="none"><title>${label}</title>${marks.map(
      mark => html`<line class="rule" x1="${x(mark)}" x2="${x(mark)}" y1="-5" y2="21"/>`,
    )}<line class="whisker" x1="${x(p50)}" x2="${x(max)}" y1="8" y2="8"/><line class="span" x1="${x(p50)}" x2="${Math.max(x(p95), x(p50) + 3)}" y1="8" y2="8"/></svg><div>${durationOf(p50)} · <b>${durationOf(p95)}</b> · ${durationOf(max)}</div>`;
  })}<div class="soft"></div><div class="clock" style="position:relative;height:20px" aria-hidden="true">${marks.map(
    mark =>
      html`<span style="position:absolute;left:${(x(mark) / WIDTH) * 100}%;transform:translateX(-50%)">${durationOf(mark)}</span>`,
  )}</div><div>median · <b>p95</b> · longest</div></div>`;
}
