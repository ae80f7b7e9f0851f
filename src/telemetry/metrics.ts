/** Every metric. The Prometheus and OpenTelemetry sinks have the same metrics; the report is made of the same counts. */
import { CACHE_RESULTS, CALL_OUTCOMES } from "./call-outcome.ts";

export interface MetricSpec {
  readonly kind: "counter" | "histogram" | "gauge";
  readonly labels: readonly string[];
  readonly about: string;
}

/** The default prefix of exported names, so that they differ from those of the program's own metrics. */
const METRIC_PREFIX = "docstokg_";

/** The name under which a metric is exported. Durations are recorded in milliseconds and exported in seconds. */
export function exportedName(name: MetricName, prefix = METRIC_PREFIX): string {
  return `${prefix}${name.replace(/_ms$/, "_seconds")}`;
}

/** Throws a RangeError for a prefix that Prometheus does not permit. */
export function checkPrefix(prefix: string | undefined): void {
  if (prefix !== undefined && !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(prefix))
    throw new RangeError(`prefix must be letters, digits and _, such as "my_app_", not ${JSON.stringify(prefix)}`);
}

export const METRICS = {
  http_requests_total: {
    kind: "counter",
    labels: ["host", "role", "outcome"],
    about: `finished calls by the host that ended them and by outcome: ${CALL_OUTCOMES.join(", ")}`,
  },
  http_refreshes_total: {
    kind: "counter",
    labels: ["host", "role"],
    about: "background refreshes of stored responses, which http_requests_total does not count",
  },
  http_cache_total: {
    kind: "counter",
    labels: ["host", "role", "result"],
    about: `finished calls in which the cache took part: ${CACHE_RESULTS.join(", ")}`,
  },
  http_attempts_total: {
    kind: "counter",
    labels: ["host", "role", "cause", "outcome"],
    about: "requests sent, by the host that they were sent to",
  },
  http_connect_failures_total: {
    kind: "counter",
    labels: ["host", "role"],
    about: "attempts for which no connection was made: nothing was sent",
  },
  http_429_total: { kind: "counter", labels: ["host"], about: "responses with status 429, every attempt counted" },
  http_503_total: { kind: "counter", labels: ["host"], about: "responses with status 503, every attempt counted" },
  http_attempt_ms: {
    kind: "histogram",
    labels: ["host", "role"],
    about: "duration of a request that was sent, from the end of its waits to the end of the body, in seconds",
  },
  rate_delay_ms: {
    kind: "histogram",
    labels: ["host", "role"],
    about: "time in the queue before an attempt, and time in the queue that ended without one, in seconds",
  },
  rate_concurrency_wait_ms: {
    kind: "histogram",
    labels: ["host", "role"],
    about: "part of rate_delay_seconds spent waiting for a concurrency slot, in seconds",
  },
  rate_acquired_total: { kind: "counter", labels: ["host", "role"], about: "grants that used a unit of a rate limit" },
  rate_blocked_total: { kind: "counter", labels: ["host", "role"], about: "requests that the limiter refused" },
  rate_aborted_total: {
    kind: "counter",
    labels: ["host", "role"],
    about: "requests aborted by their callers in the queue",
  },
  rate_head_skipped_total: {
    kind: "counter",
    labels: ["host"],
    about: "HEAD requests that the rate limit does not count",
  },
  breaker_open_total: {
    kind: "counter",
    labels: ["host", "reason"],
    about:
      "openings: circuits (failures) and host cooldowns (retry-after, rolling-window, slow-calls, cli-open); those reported by another process are counted there",
  },
  breaker_denied_total: { kind: "counter", labels: ["host"], about: "calls that a breaker refused" },
  telemetry_dropped_total: { kind: "counter", labels: ["sink"], about: "events that a sink dropped" },
  http_in_flight: { kind: "gauge", labels: [], about: "requests in flight, of the watched hub" },
  http_waiting: { kind: "gauge", labels: [], about: "queued requests, of the watched hub" },
} as const satisfies Readonly<Record<string, MetricSpec>>;

export type MetricName = keyof typeof METRICS;
export type MetricOf<Kind extends MetricSpec["kind"]> = {
  [Name in MetricName]: (typeof METRICS)[Name]["kind"] extends Kind ? Name : never;
}[MetricName];

/** Upper bounds of the histograms, in seconds. */
export const DELAY_BUCKETS_S = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Labels of a count. A metric uses those that its `labels` name. */
export interface MetricLabels {
  readonly host: string;
  readonly role: string;
  readonly outcome?: string;
  readonly cause?: string;
  readonly result?: string;
  readonly reason?: string;
}

/** The counters that are counted from events; `telemetry_dropped_total` is read from the sinks. */
export type CountedMetric = Exclude<MetricOf<"counter">, "telemetry_dropped_total">;

export interface MetricRecorder {
  count(name: CountedMetric, labels: MetricLabels): void;
  observe(name: MetricOf<"histogram">, ms: number, labels: MetricLabels): void;
}

/** The labels that the metric has, in their order. */
export function labelsOf(name: MetricName, labels: MetricLabels): Record<string, string> {
  const own: Record<string, string> = {};
  for (const label of METRICS[name].labels as readonly (keyof MetricLabels)[]) own[label] = labels[label] ?? "";
  return own;
}
