import type { Attributes } from "@opentelemetry/api";
import { gaugeOf } from "../gauges.ts";
import { MetricCollector } from "../metric-collector.ts";
import {
  checkPrefix,
  DELAY_BUCKETS_S,
  exportedName,
  labelsOf,
  METRICS,
  type MetricName,
  type MetricOf,
  type MetricRecorder,
  type MetricSpec,
} from "../metrics.ts";
import type { GaugeSource, Sink, SinkOwner } from "../sink.ts";
import { loadOpenTelemetry } from "./load-opentelemetry.ts";
import { OtelSpans } from "./otel-spans.ts";

/** Options of `otelSink`. */
export interface OtelSinkOptions {
  /**
   * Sends the context of each attempt's span to its host, in `traceparent` and `tracestate` or as the registered
   * propagator does. @default true
   */
  readonly propagate?: boolean | undefined;
  /** The beginning of every name of a metric: letters, digits and `_`. @default "docstokg_" */
  readonly prefix?: string | undefined;
}

/**
 * Sends the metrics, and a span for each call with one child for each attempt, to the OpenTelemetry SDK that the program
 * has registered. Without an SDK it does nothing. Rejects with a ConfigError when `@opentelemetry/api` is not installed.
 */
export async function otelSink({ propagate = true, prefix }: OtelSinkOptions = {}): Promise<Sink> {
  checkPrefix(prefix);
  if (typeof propagate !== "boolean") throw new TypeError(`propagate must be true or false, not ${String(propagate)}`);
  const api = await loadOpenTelemetry("otelSink");
  const meter = api.metrics.getMeter("docstokg");
  const counters = new Map<MetricName, { add(by: number, labels: Attributes): void }>();
  const histograms = new Map<MetricName, { record(value: number, labels: Attributes): void }>();
  const removeCallbacks: (() => void)[] = [];
  let hub: GaugeSource | undefined;
  let owner: SinkOwner | undefined;
  for (const [name, { kind, about }] of Object.entries(METRICS) as [MetricName, MetricSpec][]) {
    const description = about;
    const exported = exportedName(name, prefix);
    if (name === "telemetry_dropped_total") {
      const counter = meter.createObservableCounter(exported, { description });
      const read = (result: { observe(value: number, labels: Attributes): void }) => {
        for (const [sink, dropped] of Object.entries(owner?.dropped() ?? {})) result.observe(dropped, { sink });
      };
      counter.addCallback(read);
      removeCallbacks.push(() => counter.removeCallback(read));
    } else if (kind === "counter") counters.set(name, meter.createCounter(exported, { description }));
    else if (kind === "histogram") {
      const advice = { explicitBucketBoundaries: DELAY_BUCKETS_S };
      histograms.set(name, meter.createHistogram(exported, { description, unit: "s", advice }));
    } else {
      const gauge = meter.createObservableGauge(exported, { description });
      const read = (result: { observe(value: number): void }) => {
        if (hub !== undefined) result.observe(gaugeOf(name as MetricOf<"gauge">, hub));
      };
      gauge.addCallback(read);
      removeCallbacks.push(() => gauge.removeCallback(read));
    }
  }
  const recorder: MetricRecorder = {
    count: (name, labels) => counters.get(name)?.add(1, labelsOf(name, labels)),
    observe: (name, ms, labels) => histograms.get(name)?.record(ms / 1000, labelsOf(name, labels)),
  };
  const collector = new MetricCollector(recorder);
  const spans = new OtelSpans(api, propagate);
  return {
    name: "otel",
    tracer: spans,
    attach: to => {
      owner = to;
    },
    take: event => {
      collector.take(event);
      spans.take(event);
    },
    watch: source => {
      hub = source;
    },
    close: async () => {
      spans.close();
      for (const remove of removeCallbacks.splice(0)) remove();
    },
  };
}
