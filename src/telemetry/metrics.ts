/** Every metric, and the events that it is counted from. The Prometheus and OpenTelemetry sinks have the same metrics. */

import { BreakerOpenings } from "./breaker-openings.ts";
import { CALL_OUTCOMES, callOutcomeOf } from "./call-outcome.ts";
import type { TelemetryEvent } from "./events.ts";

export interface MetricSpec {
  readonly kind: "counter" | "histogram" | "gauge";
  readonly labels: readonly string[];
  readonly about: string;
}

export const METRICS = {
  rate_delay_ms: {
    kind: "histogram",
    labels: ["host", "role"],
    about: "time a call waited before it was sent, over all attempts, in ms; sent calls only",
  },
  rate_concurrency_wait_ms: {
    kind: "histogram",
    labels: ["host", "role"],
    about: "part of rate_delay_ms spent waiting for a concurrency slot, in ms",
  },
  rate_acquired_total: { kind: "counter", labels: ["host", "role"], about: "grants that used a unit of a rate limit" },
  rate_blocked_total: { kind: "counter", labels: ["host", "role"], about: "requests that the limiter refused" },
  rate_head_skipped_total: {
    kind: "counter",
    labels: ["host"],
    about: "HEAD requests that the rate limit does not count",
  },
  http_requests_total: {
    kind: "counter",
    labels: ["host", "role", "outcome"],
    about: `finished calls by outcome: ${CALL_OUTCOMES.join(", ")}`,
  },
  http_429_total: { kind: "counter", labels: ["host"], about: "responses with status 429, every attempt counted" },
  http_503_total: { kind: "counter", labels: ["host"], about: "responses with status 503, every attempt counted" },
  breaker_open_total: {
    kind: "counter",
    labels: ["host", "reason"],
    about: "openings: circuits (failures) and host cooldowns (retry-after, rolling-window, cli-open)",
  },
  breaker_denied_total: { kind: "counter", labels: ["host"], about: "calls that a breaker refused" },
  telemetry_dropped_total: { kind: "counter", labels: ["sink"], about: "events that a sink dropped" },
  http_in_flight: { kind: "gauge", labels: [], about: "requests in flight, of the watched hub" },
  http_waiting: { kind: "gauge", labels: [], about: "queued requests, of the watched hub" },
} as const satisfies Readonly<Record<string, MetricSpec>>;

export type MetricName = keyof typeof METRICS;
type Of<Kind extends MetricSpec["kind"]> = {
  [Name in MetricName]: (typeof METRICS)[Name]["kind"] extends Kind ? Name : never;
}[MetricName];
type Labels<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]["labels"][number], string>>;

/** Upper bounds of the histograms, in ms. */
export const DELAY_BUCKETS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000];

export interface MetricRecorder {
  count<Name extends Of<"counter">>(name: Name, by: number, labels: Labels<Name>): void;
  observe<Name extends Of<"histogram">>(name: Name, value: number, labels: Labels<Name>): void;
}

/** Further hosts are counted as `(other)`: a crawler would make a time series for each of very many hosts. */
const HOSTS_MAX = 1000;
const OTHER = "(other)";

/** Counts events as metrics. */
export class MetricCollector {
  readonly #recorder: MetricRecorder;
  readonly #hosts = new Set<string>();
  readonly #openings = new BreakerOpenings();

  constructor(recorder: MetricRecorder) {
    this.#recorder = recorder;
  }

  take(event: TelemetryEvent): void {
    const recorder = this.#recorder;
    const opening = this.#openings.of(event);
    if (opening !== undefined)
      recorder.count("breaker_open_total", 1, { host: this.#host(opening.host), reason: opening.reason });
    switch (event.event_type) {
      case "http_request": {
        const labels = { host: this.#host(event.host), role: event.role };
        recorder.count("http_requests_total", 1, { ...labels, outcome: callOutcomeOf(event) });
        if (event.error === "DOCSTOKG_BREAKER_OPEN") recorder.count("breaker_denied_total", 1, { host: labels.host });
        if (event.attempts > 0) {
          recorder.observe("rate_delay_ms", event.rate_delay_ms, labels);
          recorder.observe("rate_concurrency_wait_ms", event.rate_concurrency_wait_ms, labels);
          // A response that is a failure is counted from its breaker_failure event, one per attempt.
          if (event.breaker_recorded !== "failure" && !event.from_cache) this.#throttle(event.status, labels.host);
        }
        return;
      }
      case "ratelimit.acquire": {
        const labels = { host: this.#host(event.key), role: event.role };
        if (event.outcome === "refused") recorder.count("rate_blocked_total", 1, labels);
        else if (event.outcome === "granted" && event.weight > 0) recorder.count("rate_acquired_total", 1, labels);
        return;
      }
      case "rate_head_skipped":
        recorder.count("rate_head_skipped_total", 1, { host: this.#host(event.host) });
        return;
      case "breaker_failure":
        this.#throttle(event.status, this.#host(event.host));
        return;
      case "telemetry_dropped":
        recorder.count("telemetry_dropped_total", event.dropped, { sink: event.sink });
    }
  }

  #throttle(status: number | undefined, host: string): void {
    if (status === 429) this.#recorder.count("http_429_total", 1, { host });
    else if (status === 503) this.#recorder.count("http_503_total", 1, { host });
  }

  #host(name: string): string {
    if (this.#hosts.has(name)) return name;
    if (this.#hosts.size >= HOSTS_MAX) return OTHER;
    this.#hosts.add(name);
    return name;
  }
}
