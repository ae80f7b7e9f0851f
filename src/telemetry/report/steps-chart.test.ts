import assert from "node:assert/strict";
import { test } from "node:test";
import { axisLabels, type OutcomeCounts, stepsChart } from "./steps-chart.ts";

const HOUR_MS = 3_600_000;

test("the marks of the time axis are all different, whatever the span", () => {
  const fromMs = Date.UTC(2026, 10, 16, 5, 30);
  for (const spanMs of [
    1,
    20,
    9000,
    1_300_000,
    23 * HOUR_MS,
    24 * HOUR_MS,
    48 * HOUR_MS,
    96 * HOUR_MS,
    400 * HOUR_MS,
  ]) {
    const marks = axisLabels({ fromMs, stepMs: spanMs / 100, steps: 100 }).text.match(/<span>[^<]*/g) ?? [];
    // A span of few milliseconds cannot be shown more exactly.
    if (spanMs >= 20) assert.equal(new Set(marks).size, 5, `${spanMs}: ${marks}`);
  }
});

test("the middle of the scale is shown only if it is a whole number of calls", () => {
  const chart = (peak: number) => {
    const counts: OutcomeCounts = {
      answered: [peak],
      cached: [0],
      throttled: [0],
      failed: [0],
      refused: [0],
      aborted: [0],
    };
    const { text } = stepsChart(counts, { fromMs: 0, stepMs: 1000, steps: 1 });
    return [...text.matchAll(/class="scale"[^>]*><span>([^<]*)/g)].map(([, mark]) => mark);
  };
  assert.deepEqual([chart(3), chart(4), chart(5), chart(6)], [["3"], ["4", "2"], ["5"], ["6", "3"]]);
});
