import { CALL_OUTCOMES, type CallOutcome } from "../call-outcome.ts";
import { html, type Markup } from "./markup.ts";
import { clockOf, countOf, durationOf, momentOf } from "./number-text.ts";

const DAY_MS = 86_400_000;

export type OutcomeCounts = Readonly<Record<CallOutcome, readonly number[]>>;

/** The time axis that all charts of the page share. */
export interface Axis {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly steps: number;
}

export const OUTCOME_LABELS: Readonly<Record<CallOutcome, string>> = {
  answered: "answered",
  cached: "from the cache",
  throttled: "429 or 503",
  failed: "failed",
  refused: "refused locally",
  aborted: "aborted by the caller",
};

function totalAt(counts: OutcomeCounts, step: number): number {
  return CALL_OUTCOMES.reduce((sum, outcome) => sum + (counts[outcome][step] ?? 0), 0);
}

function peakOf(counts: OutcomeCounts, { steps }: Axis): number {
  let peak = 0;
  for (let step = 0; step < steps; step += 1) peak = Math.max(peak, totalAt(counts, step));
  return peak;
}

/** Bars of calls by outcome, one unit wide per step. They contain no text, because the drawing is stretched. */
export function bars(counts: OutcomeCounts, axis: Axis, height: number, waitMs?: readonly number[]): readonly Markup[] {
  const peak = Math.max(1, peakOf(counts, axis));
  const drawn: Markup[] = [];
  for (let step = 0; step < axis.steps; step += 1) {
    if (totalAt(counts, step) === 0) continue;
    let y = height;
    const pieces = CALL_OUTCOMES.map(outcome => {
      const part = ((counts[outcome][step] ?? 0) / peak) * height;
      y -= part;
      if (part === 0) return undefined;
      return html`<rect class="${outcome}" x="${step + 0.08}" y="${round(y)}" width="0.84" height="${round(part)}"/>`;
    });
    drawn.push(
      html`<g class="step"><title>${tip(counts, axis, step, waitMs)}</title><rect class="hit" x="${step}" y="0" width="1" height="${height}"/>${pieces}</g>`,
    );
  }
  return drawn;
}

function tip(counts: OutcomeCounts, axis: Axis, step: number, waitMs: readonly number[] | undefined): string {
  const { fromMs, stepMs } = axis;
  const lines = CALL_OUTCOMES.filter(outcome => (counts[outcome][step] ?? 0) > 0).map(
    outcome => `${countOf(counts[outcome][step] ?? 0)} ${OUTCOME_LABELS[outcome]}`,
  );
  const wait = waitMs?.[step] ?? 0;
  if (wait > 0) lines.push(`longest wait ${durationOf(wait)}`);
  return [`${timeOn(axis, fromMs + step * stepMs, stepMs)} UTC, ${durationOf(stepMs)}`, ...lines].join("\n");
}

/** The chart of all calls over time. */
export function stepsChart(counts: OutcomeCounts, axis: Axis): Markup {
  const height = 150;
  const peak = peakOf(counts, axis);
  const label = `Calls over time, at most ${countOf(peak)} in ${durationOf(axis.stepMs)}`;
  return html`<div class="plot"><div class="scale" style="top:0"><span>${countOf(peak)}</span></div>${
    peak >= 4 && peak % 2 === 0
      ? html`<div class="scale" style="top:50%"><span>${countOf(peak / 2)}</span></div>`
      : undefined
  }<svg role="img" aria-label="${label}" viewBox="0 0 ${axis.steps} ${height}" height="${height}" preserveAspectRatio="none">${bars(counts, axis, height)}</svg></div>${axisLabels(axis)}`;
}

export function axisLabels(axis: Axis): Markup {
  const { fromMs, stepMs, steps } = axis;
  const marks = [0, 0.25, 0.5, 0.75, 1].map(share => fromMs + share * steps * stepMs);
  const spanMs = steps * stepMs;
  // The precision that makes all marks different.
  const grainMs = spanMs > 4 * DAY_MS ? DAY_MS : spanMs > 20 * 60_000 ? 60_000 : spanMs > 8000 ? 1000 : 1;
  return html`<div class="clock" aria-hidden="true">${marks.map(mark => html`<span>${timeOn(axis, mark, grainMs)}</span>`)}</div>`;
}

/** A UTC time of the run with this precision. It has its day if the run is longer than one. */
export function timeOn({ stepMs, steps }: Axis, ms: number, grainMs: number): string {
  const needsDay = grainMs < DAY_MS && steps * stepMs >= DAY_MS;
  return `${needsDay ? momentOf(ms).slice(5, 11) : ""}${clockOf(ms, grainMs)}`;
}

export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
