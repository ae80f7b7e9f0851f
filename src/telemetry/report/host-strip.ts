import type { BreakerPeriod } from "../summary/host-track.ts";
import type { HostTimeline } from "../summary/timeline.ts";
import { html, type Markup } from "./markup.ts";
import { countOf, durationOf } from "./number-text.ts";
import { type Axis, bars, round, timeOn } from "./steps-chart.ts";

const BARS_HEIGHT = 46;
const GAP = 6;
const WAITS_HEIGHT = 26;
const BAND_HEIGHT = 7;
const HEIGHT = BARS_HEIGHT + GAP + WAITS_HEIGHT + GAP + BAND_HEIGHT;

const PERIOD_LABELS: Readonly<Record<BreakerPeriod["kind"], string>> = {
  open: "circuit open",
  half_open: "half-open",
  cooldown: "in cooldown",
};

/** The chart of one host: calls, longest waits, and periods with an open circuit or a cooldown. */
export function hostStrip(host: HostTimeline, axis: Axis): Markup {
  const longestMs = Math.max(...host.waitMs, 0);
  const openMs = openMsOf(host.periods);
  const facts = [
    `${countOf(host.calls)} ${host.calls === 1 ? "call" : "calls"}`,
    host.throttles > 0 ? `${countOf(host.throttles)} × 429 or 503` : "",
    longestMs > 0 ? `longest wait ${durationOf(longestMs)}` : "no waits",
    openMs > 0 ? `open or in cooldown for ${durationOf(openMs)}` : "",
  ].filter(fact => fact !== "");
  return html`<div class="host"><div><h3>${host.host}</h3>${facts.map(fact => html`<p>${fact}</p>`)}</div>
<svg role="img" aria-label="${host.host} over time: ${facts.join(", ")}" viewBox="0 0 ${axis.steps} ${HEIGHT}" height="${HEIGHT}" preserveAspectRatio="none">
<line class="rule" x1="0" x2="${axis.steps}" y1="${BARS_HEIGHT}" y2="${BARS_HEIGHT}"/>${waitArea(host.waitMs, longestMs, axis)}
<rect class="well" x="0" y="${HEIGHT - BAND_HEIGHT}" width="${axis.steps}" height="${BAND_HEIGHT}"/>${host.periods.map(period => band(period, axis))}${bars(host.outcomes, axis, BARS_HEIGHT, host.waitMs)}</svg></div>`;
}

/** The time in which a circuit was open or the host was in cooldown. Periods of several roles may overlap. */
function openMsOf(periods: readonly BreakerPeriod[]): number {
  let [openMs, endMs] = [0, Number.NEGATIVE_INFINITY];
  const open = periods.filter(({ kind }) => kind !== "half_open");
  for (const { fromMs, toMs } of open.toSorted((a, b) => a.fromMs - b.fromMs)) {
    openMs += Math.max(0, toMs - Math.max(fromMs, endMs));
    endMs = Math.max(endMs, toMs);
  }
  return openMs;
}

/** Scaled to the longest wait of the host. */
function waitArea(waitMs: readonly number[], longestMs: number, { steps }: Axis): Markup | undefined {
  if (longestMs === 0) return undefined;
  const foot = BARS_HEIGHT + GAP + WAITS_HEIGHT;
  const points: string[] = [];
  for (let step = 0; step < steps; step += 1) {
    const y = round(foot - ((waitMs[step] ?? 0) / longestMs) * WAITS_HEIGHT);
    points.push(`${step},${y}`, `${step + 1},${y}`);
  }
  const line = points.join(" ");
  return html`<polygon class="area" points="0,${foot} ${line} ${steps},${foot}"/><polyline class="edge" points="${line}"/>`;
}

function band({ kind, fromMs, toMs, about }: BreakerPeriod, axis: Axis): Markup | undefined {
  const { fromMs: startMs, stepMs, steps } = axis;
  const x = Math.max(0, (fromMs - startMs) / stepMs);
  // At least wide enough to be seen.
  const width = Math.max(Math.min(steps, (toMs - startMs) / stepMs) - x, steps / 400);
  const tip = `${PERIOD_LABELS[kind]} (${about})\n${timeOn(axis, fromMs, 1000)} UTC, for ${durationOf(toMs - fromMs)}`;
  return html`<g class="step"><title>${tip}</title><rect class="${kind}" x="${round(x)}" y="${HEIGHT - BAND_HEIGHT}" width="${round(width)}" height="${BAND_HEIGHT}"/></g>`;
}
