/** The time that the charts show. */
import type { DashboardState, SeriesPoint } from "../src/dashboard/dashboard-state.ts";

export interface ChartRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
}

/** With fewer steps, a few requests would fill the chart. */
const STEPS_MIN = 60;
const LAST_MS = 5 * 60_000;

/** The last minutes until now. For a run, its whole time: until now, or until its last point if the run is over. */
export function chartRange(
  { about, series: { stepMs }, run }: Pick<DashboardState, "about" | "series" | "run">,
  points: readonly SeriesPoint[],
  nowMs: number,
): ChartRange {
  const isRun = about.kind === "run";
  const firstMs = points[0]?.atMs ?? nowMs;
  // A killed run has no recorded end.
  const isOver = isRun && run !== null && run.state !== "running";
  const lastMs = isOver ? (points.at(-1)?.atMs ?? firstMs) + stepMs : nowMs;
  const toMs = Math.floor(lastMs / stepMs) * stepMs + stepMs;
  const fromMs = Math.max(isRun ? 0 : toMs - LAST_MS, Math.min(firstMs, toMs - STEPS_MIN * stepMs));
  return { fromMs, toMs, stepMs };
}
