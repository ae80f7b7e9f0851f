import type { TelemetryEvent } from "../telemetry/events.ts";
import { MetricCollector } from "../telemetry/metric-collector.ts";
import type { CountedMetric, MetricLabels, MetricOf } from "../telemetry/metrics.ts";
import type { SeriesName, SeriesPoint } from "./dashboard-state.ts";

type Point = { -readonly [Name in keyof SeriesPoint]: SeriesPoint[Name] };

/** The metrics that a chart counts. */
const COUNTED: Partial<Record<CountedMetric, SeriesName>> = {
  http_attempts_total: "requests",
  http_429_total: "throttles",
  http_503_total: "throttles",
  http_connect_failures_total: "failures",
  rate_blocked_total: "refused",
  breaker_denied_total: "refused",
};
/** Results of the cache that needed no request. */
const HITS: ReadonlySet<string> = new Set(["hit", "stale", "coalesced"]);

/**
 * Counts requests, throttles, failures and so on in each step of the last minutes. The same collector derives the
 * numbers of the metrics and reports from the events, so all three agree.
 */
export class RateSeries {
  readonly stepMs: number;
  readonly #stepsMax: number;
  /** Oldest first; steps in which nothing happened are absent. */
  #points: Point[] = [];
  #nowMs = 0;
  readonly #collector = new MetricCollector({
    count: (name, labels) => this.#count(name, labels),
    observe: (name, value) => this.#observe(name, value),
  });

  constructor({ stepMs, keepMs }: { readonly stepMs: number; readonly keepMs: number }) {
    this.stepMs = stepMs;
    this.#stepsMax = Math.ceil(keepMs / stepMs);
  }

  /** @param nowMs when the event happened */
  take(event: TelemetryEvent, nowMs = event.ts): void {
    this.#nowMs = nowMs;
    this.#collector.take(event);
  }

  add(name: SeriesName, amount: number, atMs: number): void {
    if (amount > 0) this.#pointAt(atMs)[name] += amount;
  }

  /** For a value that is not a count: the largest one of the step is kept. */
  raise(name: SeriesName, value: number, atMs: number): void {
    if (value <= 0) return;
    const point = this.#pointAt(atMs);
    point[name] = Math.max(point[name], value);
  }

  /** The steps that began at `fromMs` or later, oldest first. */
  since(fromMs: number): readonly SeriesPoint[] {
    const first = this.#points.findLastIndex(({ atMs }) => atMs < fromMs) + 1;
    return this.#points.slice(first).map(point => ({ ...point }));
  }

  #count(name: CountedMetric, labels: MetricLabels): void {
    const series = COUNTED[name];
    if (series !== undefined) this.add(series, 1, this.#nowMs);
    if (name === "http_attempts_total" && labels.outcome === "failed") this.add("failures", 1, this.#nowMs);
    if (name === "http_cache_total" && HITS.has(labels.result ?? "")) this.add("hits", 1, this.#nowMs);
  }

  #observe(name: MetricOf<"histogram">, value: number): void {
    if (name === "rate_delay_ms") this.raise("waitMs", value, this.#nowMs);
  }

  /** If the clock steps back, events count in the last step. */
  #pointAt(nowMs: number): Point {
    const last = this.#points.at(-1);
    const atMs = Math.max(Math.floor(nowMs / this.stepMs) * this.stepMs, last?.atMs ?? 0);
    if (last?.atMs === atMs) return last;
    const point: Point = { atMs, requests: 0, waitMs: 0, throttles: 0, hits: 0, failures: 0, refused: 0 };
    this.#points.push(point);
    if (this.#points.length > this.#stepsMax * 2) {
      const oldestMs = atMs - this.#stepsMax * this.stepMs;
      this.#points = this.#points.filter(one => one.atMs > oldestMs);
    }
    return point;
  }
}
