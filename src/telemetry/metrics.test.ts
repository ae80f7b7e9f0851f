import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { context, metrics, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { Registry } from "prom-client";
import { hubFor, serve } from "../../test/http/kit.ts";
import { acquire, at, call, START_MS } from "../../test/telemetry/kit.ts";
import type { TelemetryEvent } from "./events.ts";
import { METRICS } from "./metrics.ts";
import { channelSink } from "./sinks/channel-sink.ts";
import { otelSink } from "./sinks/otel-sink.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";
import { createTelemetry } from "./telemetry.ts";

const host = "a.example";

const failure = { host, role: "metadata", retry_after_s: undefined } as const;

const change = { host, role: "metadata", reset_timeout_s: 60, last_rate_delay_ms: 0 } as const;

const events: readonly TelemetryEvent[] = [
  call(0, host, { rate_delay_ms: 30, rate_concurrency_wait_ms: 7 }),
  call(1, host, { from_cache: true, attempts: 0, rate_delay_ms: 0 }),
  call(2, host, { status: 429, breaker_recorded: "failure", attempts: 2 }),
  call(3, host, { status: undefined, error: "DOCSTOKG_BREAKER_OPEN", attempts: 0, breaker_recorded: undefined }),
  // A 503 is counted also when the policy makes it neutral.
  call(4, host, { status: 503, breaker_recorded: "neutral" }),
  at(5, "breaker_failure", { ...failure, status: 429 }),
  at(6, "breaker_failure", { ...failure, status: 429 }),
  at(7, "breaker_failure", { ...failure, status: 503 }),
  at(8, "breaker_failure", { ...failure, status: undefined }),
  acquire(9, host, "granted"),
  acquire(10, host, "granted", 0),
  acquire(11, host, "refused"),
  acquire(12, host, "aborted"),
  at(13, "rate_head_skipped", { host, role: "metadata" }),
  at(14, "breaker_state_change", { ...change, old: "closed", new: "open" }),
  at(15, "breaker_state_change", { ...change, old: "open", new: "half_open" }),
  at(16, "breaker_cooldown_set", { host, until: START_MS + 5000, reason: "retry-after" }),
  // Extends the running cooldown.
  at(17, "breaker_cooldown_set", { host, until: START_MS + 6000, reason: "retry-after" }),
  at(6000, "breaker_cooldown_set", { host, until: START_MS + 9000, reason: "cli-open:somebody's words" }),
  at(6001, "telemetry_dropped", { sink: "jsonl", dropped: 4 }),
];

const lines = [
  'rate_delay_ms_sum{host="a.example",role="metadata"} 30',
  'rate_delay_ms_count{host="a.example",role="metadata"} 3',
  'rate_concurrency_wait_ms_sum{host="a.example",role="metadata"} 7',
  'rate_acquired_total{host="a.example",role="metadata"} 1',
  'rate_blocked_total{host="a.example",role="metadata"} 1',
  'rate_head_skipped_total{host="a.example"} 1',
  'http_429_total{host="a.example"} 2',
  'http_503_total{host="a.example"} 2',
  'http_requests_total{host="a.example",role="metadata",outcome="answered"} 1',
  'http_requests_total{host="a.example",role="metadata",outcome="cached"} 1',
  'http_requests_total{host="a.example",role="metadata",outcome="throttled"} 2',
  'http_requests_total{host="a.example",role="metadata",outcome="refused"} 1',
  'breaker_open_total{host="a.example",reason="failures"} 1',
  'breaker_open_total{host="a.example",reason="retry-after"} 1',
  'breaker_open_total{host="a.example",reason="cli-open"} 1',
  'breaker_denied_total{host="a.example"} 1',
  'telemetry_dropped_total{sink="jsonl"} 4',
  "http_in_flight 2",
  "http_waiting 5",
];

test("Prometheus gets every metric by its name, in a new registry or a given one", async () => {
  const registry = new Registry();
  const sink = await prometheusSink({ registry });
  assert.equal(sink.registry, registry);
  sink.watch?.({ snapshot: () => ({ inFlight: 2, waiting: 5 }) });
  for (const event of events) sink.take(event);
  const text = await registry.metrics();
  const printed = text.split("\n");
  for (const line of lines) assert.ok(printed.includes(line), `${line}\n${text}`);
  for (const name of Object.keys(METRICS))
    assert.ok(
      printed.some(line => line.startsWith(`# HELP ${name} `)),
      name,
    );
});

test("the number of time series is limited, however many hosts there are", async () => {
  const sink = await prometheusSink();
  for (let i = 0; i < 3000; i += 1) sink.take(acquire(i, `host-${i}.example`, "granted"));
  const series = (await sink.registry.metrics()).split("\n").filter(line => line.startsWith("rate_acquired_total{"));
  assert.equal(series.length, 1001);
  assert.ok(series.includes('rate_acquired_total{host="(other)",role="metadata"} 2000'));
});

test("OpenTelemetry gets the same metrics, and a span for each call", async t => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  metrics.setGlobalMeterProvider(provider);
  const spans = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  t.after(async () => {
    await provider.shutdown();
    metrics.disable();
    trace.disable();
    context.disable();
  });
  const sink = await otelSink();
  sink.watch?.({ snapshot: () => ({ inFlight: 2, waiting: 5 }) });
  for (const event of events) sink.take(event);
  await provider.forceFlush();
  const points = exporter.getMetrics().flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(scope =>
      scope.metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ value, attributes }) => {
          const labels = Object.entries(attributes)
            .map(([name, text]) => `${name}=${JSON.stringify(text)}`)
            .join(",");
          const at = labels === "" ? "" : `{${labels}}`;
          return typeof value === "number"
            ? `${descriptor.name}${at} ${value}`
            : `${descriptor.name}_sum${at} ${(value as { sum: number }).sum}`;
        }),
      ),
    ),
  );
  for (const line of lines.filter(text => !text.startsWith("rate_delay_ms_count"))) {
    assert.ok(points.includes(line), `${line}\n${points.join("\n")}`);
  }
  const [first, , , refused] = spans.getFinishedSpans();
  assert.equal(spans.getFinishedSpans().length, 5);
  assert.equal(first?.attributes["server.address"], host);
  assert.equal(first?.attributes["http.response.status_code"], 200);
  assert.equal(refused?.attributes["error.type"], "DOCSTOKG_BREAKER_OPEN");
  await sink.close?.();
});

test("a span has the length of its call", async t => {
  const spans = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  t.after(() => trace.disable());
  const sink = await otelSink();
  sink.take(call(2000, host, { elapsed_ms: 1500 }));
  const [span] = spans.getFinishedSpans();
  const ms = ([seconds, nanos]: [number, number]) => seconds * 1000 + nanos / 1e6 - START_MS;
  assert.ok(span !== undefined);
  assert.deepEqual([ms(span.startTime), ms(span.endTime)], [500, 2000]);
});

test("a subscriber of a diagnostics channel gets its events, and without subscribers no event is built", async t => {
  const sink = channelSink();
  const telemetry = createTelemetry({ sinks: [sink], runId: "r" });
  const received: unknown[] = [];
  const onMessage = (message: unknown) => received.push(message);
  assert.equal(sink.isListening, false);
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { telemetry: [telemetry.listener] });
  await (await hub.fetch(server.origin)).text();
  subscribe("docstokg:http_request", onMessage);
  assert.equal(sink.isListening, true);
  await (await hub.fetch(`${server.origin}/again`)).text();
  unsubscribe("docstokg:http_request", onMessage);
  await (await hub.fetch(`${server.origin}/unheard`)).text();
  assert.equal(received.length, 1);
  assert.deepEqual(
    Object.entries(received[0] as object).filter(([name]) => name === "event_type" || name === "run_id"),
    [
      ["event_type", "http_request"],
      ["run_id", "r"],
    ],
  );
});
