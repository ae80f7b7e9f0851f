import { commonName } from "../policy/partition-name.ts";
import { type BreakerOpening, BreakerOpenings } from "./breaker-openings.ts";
import { cacheResultOf, callOutcomeOf } from "./call-outcome.ts";
import type { EventOf, TelemetryEvent } from "./events.ts";
import type { MetricLabels, MetricRecorder } from "./metrics.ts";

/** Further hosts are counted as `(other)`, because each host adds time series and a crawler calls very many hosts. */
const HOSTS_MAX = 1000;
const OTHER = "(other)";

/**
 * The only place that derives metrics from events. Prometheus, OpenTelemetry and the report record the same metrics, so
 * their numbers cannot differ.
 */
export class MetricCollector {
  readonly #recorder: MetricRecorder;
  readonly #hostsMax: number;
  readonly #hosts = new Set<string>();
  readonly #openings = new BreakerOpenings();

  constructor(recorder: MetricRecorder, hostsMax = HOSTS_MAX) {
    this.#recorder = recorder;
    this.#hostsMax = hostsMax;
  }

  /** Counts an event. Returns the opening of a circuit that the event reports, if any. */
  take(event: TelemetryEvent): BreakerOpening | undefined {
    const opening = this.#openings.of(event);
    if (opening?.isCounted)
      this.#recorder.count("breaker_open_total", this.#labels(opening.host, "", { reason: opening.reason }));
    switch (event.event_type) {
      case "http_request":
        this.#call(event);
        break;
      case "http_attempt":
        this.#attempt(event);
        break;
      case "ratelimit.acquire":
        this.#acquire(event);
        break;
      case "rate_head_skipped":
        this.#recorder.count("rate_head_skipped_total", this.#labels(event.host, event.role));
    }
    return opening;
  }

  /** A call is counted for its last host. After a redirect, that may be another host than the one that was called. */
  #call(event: EventOf<"http_request">): void {
    const { final_host, role, background, unsent_wait_ms, unsent_slot_wait_ms } = event;
    const recorder = this.#recorder;
    const labels = this.#labels(final_host, role);
    if (unsent_wait_ms > 0) {
      recorder.observe("rate_delay_ms", unsent_wait_ms, labels);
      recorder.observe("rate_concurrency_wait_ms", unsent_slot_wait_ms, labels);
    }
    if (background) {
      recorder.count("http_refreshes_total", labels);
      return;
    }
    recorder.count("http_requests_total", { ...labels, outcome: callOutcomeOf(event) });
    const result = cacheResultOf(event);
    if (result !== undefined) recorder.count("http_cache_total", { ...labels, result });
    if (event.error === "DOCSTOKG_BREAKER_OPEN") recorder.count("breaker_denied_total", labels);
  }

  #attempt(event: EventOf<"http_attempt">): void {
    const { host, role, cause, outcome, status, connection } = event;
    const recorder = this.#recorder;
    const labels = this.#labels(host, role);
    recorder.observe("rate_delay_ms", queueWaitMs(event), labels);
    recorder.observe("rate_concurrency_wait_ms", event.slot_wait_ms, labels);
    if (connection === "none") {
      recorder.count("http_connect_failures_total", labels);
      return;
    }
    recorder.count("http_attempts_total", { ...labels, cause, outcome });
    recorder.observe("http_attempt_ms", event.elapsed_ms, labels);
    if (status === 429) recorder.count("http_429_total", labels);
    else if (status === 503) recorder.count("http_503_total", labels);
  }

  #acquire({ key, role, outcome, weight }: EventOf<"ratelimit.acquire">): void {
    const labels = this.#labels(key, role);
    if (outcome === "refused") this.#recorder.count("rate_blocked_total", labels);
    else if (outcome === "aborted") this.#recorder.count("rate_aborted_total", labels);
    else if (weight > 0) this.#recorder.count("rate_acquired_total", labels);
  }

  #labels(host: string, role: string, more?: Partial<MetricLabels>): MetricLabels {
    return { host: this.#host(host), role, ...more };
  }

  /** The label of a host, service or resolver. Its partitions have the same label: there may be one for each tenant. */
  #host(nameOrPartition: string): string {
    if (this.#hostsMax === Number.POSITIVE_INFINITY) return nameOrPartition;
    const name = commonName(nameOrPartition);
    if (this.#hosts.has(name)) return name;
    if (this.#hosts.size >= this.#hostsMax) return OTHER;
    this.#hosts.add(name);
    return name;
  }
}

/** The time that this attempt adds to `rate_delay_ms` of its call. */
export function queueWaitMs(event: EventOf<"http_attempt">): number {
  return event.rate_wait_ms + event.slot_wait_ms + event.breaker_wait_ms + event.jitter_wait_ms;
}
