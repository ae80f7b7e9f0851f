/** The only file that uses `@opentelemetry/api`, an optional package that is loaded when a sink is made. */
import type { Attributes } from "@opentelemetry/api";
import { ConfigError } from "../../errors.ts";
import { callOutcomeOf } from "../call-outcome.ts";
import type { EventOf } from "../events.ts";
import {
  DELAY_BUCKETS_MS,
  METRICS,
  MetricCollector,
  type MetricName,
  type MetricRecorder,
  type MetricSpec,
} from "../metrics.ts";
import type { GaugeSource, Sink } from "../sink.ts";

/**
 * Sends the metrics, and a span for each call, to the OpenTelemetry SDK that the program has registered. Without an SDK
 * it does nothing. Rejects with a ConfigError when `@opentelemetry/api` is not installed.
 */
export async function otelSink(): Promise<Sink> {
  const { context, metrics, SpanKind, SpanStatusCode, trace } = await loadApi();
  const otel = metrics.getMeter("docstokg");
  const tracer = trace.getTracer("docstokg");
  const counters = new Map<MetricName, { add(by: number, labels: Attributes): void }>();
  const histograms = new Map<MetricName, { record(value: number, labels: Attributes): void }>();
  const stops: (() => void)[] = [];
  let hub: GaugeSource | undefined;
  const gauges = { http_in_flight: "inFlight", http_waiting: "waiting" } as const;
  for (const [name, { kind, about }] of Object.entries(METRICS) as [MetricName, MetricSpec][]) {
    const description = about;
    if (kind === "counter") counters.set(name, otel.createCounter(name, { description }));
    else if (kind === "histogram") {
      const advice = { explicitBucketBoundaries: DELAY_BUCKETS_MS };
      histograms.set(name, otel.createHistogram(name, { description, unit: "ms", advice }));
    } else {
      const field = gauges[name as keyof typeof gauges];
      const gauge = otel.createObservableGauge(name, { description });
      const read = (result: { observe(value: number): void }) => {
        if (hub !== undefined) result.observe(hub.snapshot()[field]);
      };
      gauge.addCallback(read);
      stops.push(() => gauge.removeCallback(read));
    }
  }
  const recorder: MetricRecorder = {
    count: (name, by, labels) => counters.get(name)?.add(by, labels),
    observe: (name, value, labels) => histograms.get(name)?.record(value, labels),
  };
  const collector = new MetricCollector(recorder);

  const span = (event: EventOf<"http_request">) => {
    const outcome = callOutcomeOf(event);
    // The span is created when the call has ended.
    const startTime = event.ts - event.elapsed_ms;
    const options = { kind: SpanKind.CLIENT, startTime, attributes: attributesOf(event, outcome) };
    const made = tracer.startSpan(event.method, options, context.active());
    if (outcome === "failed" || outcome === "throttled" || outcome === "refused")
      made.setStatus({ code: SpanStatusCode.ERROR, message: event.error ?? String(event.status) });
    made.end(event.ts);
  };
  return {
    name: "otel",
    take: event => {
      collector.take(event);
      if (event.event_type === "http_request") span(event);
    },
    watch: source => {
      hub = source;
    },
    close: async () => {
      for (const stop of stops.splice(0)) stop();
    },
  };
}

/** Names of OpenTelemetry's semantic conventions where they exist. */
function attributesOf(event: EventOf<"http_request">, outcome: string): Attributes {
  const { host, method, status, error, role, resolver, attempts, run_id, config_hash } = event;
  return {
    "http.request.method": method,
    "server.address": host,
    ...(status !== undefined && { "http.response.status_code": status }),
    ...(error !== undefined && { "error.type": error }),
    ...(attempts > 1 && { "http.request.resend_count": attempts - 1 }),
    ...(resolver !== undefined && { "docstokg.resolver": resolver }),
    "docstokg.role": role,
    "docstokg.outcome": outcome,
    "docstokg.rate_delay_ms": event.rate_delay_ms,
    "docstokg.breaker_host_state": event.breaker_host_state,
    "docstokg.run_id": run_id,
    "docstokg.config_hash": config_hash,
    "docstokg.url_hash": event.url_hash,
  };
}

async function loadApi() {
  try {
    return await import("@opentelemetry/api");
  } catch (cause) {
    const message = "needs the package @opentelemetry/api: npm install @opentelemetry/api";
    throw new ConfigError([{ where: "otelSink", path: "", message }], { cause });
  }
}
