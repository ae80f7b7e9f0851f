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
import { heldServer, hubFor, serve } from "../../test/http/kit.ts";
import { acquire, at, attempt, call, START_MS } from "../../test/telemetry/kit.ts";
import type { TelemetryEvent } from "./events.ts";
import { exportedName, METRICS, type MetricName } from "./metrics.ts";
import { channelSink } from "./sinks/channel-sink.ts";
import { otelSink } from "./sinks/otel-sink.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";
import { createTelemetry } from "./telemetry.ts";

const host = "a.example";

const change = { host, role: "metadata", reset_timeout_s: 60, last_rate_delay_ms: 0 } as const;

const events: readonly TelemetryEvent[] = [
  attempt(0, host, { rate_wait_ms: 23, slot_wait_ms: 7, elapsed_ms: 40 }),
  call(0, host, { rate_delay_ms: 30, rate_concurrency_wait_ms: 7 }),
  call(1, host, { from_cache: true, attempts: 0, rate_delay_ms: 0 }),
  attempt(2, host, { status: 429, outcome: "throttled", breaker_recorded: "failure" }),
  attempt(2, host, { status: 429, outcome: "throttled", breaker_recorded: "failure", attempt: 2, cause: "retry" }),
  call(2, host, { status: 429, breaker_recorded: "failure", attempts: 2 }),
  // It waited 5 ms, of which 2 ms for a slot, before it was refused.
  call(3, host, {
    status: undefined,
    error: "DOCSTOKG_BREAKER_OPEN",
    attempts: 0,
    breaker_recorded: undefined,
    rate_delay_ms: 5,
    unsent_wait_ms: 5,
    unsent_slot_wait_ms: 2,
  }),
  // A 503 is counted also when the policy makes it neutral.
  attempt(4, host, { status: 503, outcome: "throttled", breaker_recorded: "neutral" }),
  call(4, host, { status: 503, breaker_recorded: "neutral" }),
  // The hub follows a redirect to another host, which answers 503.
  attempt(5, host, { status: 302 }),
  attempt(5, "b.example", { status: 503, outcome: "throttled", breaker_recorded: "failure", cause: "redirect" }),
  call(5, host, { final_host: "b.example", status: 503, attempts: 2, breaker_recorded: "failure" }),
  attempt(6, host, { connection: "none", status: undefined, outcome: "failed", error: "ECONNREFUSED" }),
  attempt(7, host, { cause: "refresh", status: 304 }),
  call(7, host, { background: true, revalidated: true, from_cache: true }),
  call(8, host, { aborted: true, error: "UND_ERR_ABORTED" }),
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
  at(6000, "breaker_cooldown_set", { host, until: START_MS + 9000, reason: "cli-open:words of an operator" }),
  // Another process has opened these: it counts them.
  at(20_000, "breaker_state_change", { ...change, old: "closed", new: "open", from_peer: true }),
  at(20_001, "breaker_cooldown_set", { host, until: START_MS + 29_000, reason: "retry-after", from_peer: true }),
];

const lines = [
  'docstokg_rate_delay_seconds_sum{host="a.example",role="metadata"} 0.035',
  'docstokg_rate_delay_seconds_count{host="a.example",role="metadata"} 8',
  'docstokg_rate_concurrency_wait_seconds_sum{host="a.example",role="metadata"} 0.009',
  'docstokg_rate_acquired_total{host="a.example",role="metadata"} 1',
  'docstokg_rate_blocked_total{host="a.example",role="metadata"} 1',
  'docstokg_rate_aborted_total{host="a.example",role="metadata"} 1',
  'docstokg_rate_head_skipped_total{host="a.example"} 1',
  'docstokg_http_attempts_total{host="a.example",role="metadata",cause="call",outcome="answered"} 2',
  'docstokg_http_attempts_total{host="a.example",role="metadata",cause="call",outcome="throttled"} 2',
  'docstokg_http_attempts_total{host="a.example",role="metadata",cause="retry",outcome="throttled"} 1',
  'docstokg_http_attempts_total{host="a.example",role="metadata",cause="refresh",outcome="answered"} 1',
  'docstokg_http_attempts_total{host="b.example",role="metadata",cause="redirect",outcome="throttled"} 1',
  'docstokg_http_attempt_seconds_sum{host="a.example",role="metadata"} 0.04',
  'docstokg_http_connect_failures_total{host="a.example",role="metadata"} 1',
  'docstokg_http_429_total{host="a.example"} 2',
  'docstokg_http_503_total{host="a.example"} 1',
  'docstokg_http_503_total{host="b.example"} 1',
  'docstokg_http_requests_total{host="a.example",role="metadata",outcome="answered"} 1',
  'docstokg_http_requests_total{host="a.example",role="metadata",outcome="cached"} 1',
  'docstokg_http_requests_total{host="a.example",role="metadata",outcome="throttled"} 2',
  'docstokg_http_requests_total{host="a.example",role="metadata",outcome="refused"} 1',
  'docstokg_http_requests_total{host="a.example",role="metadata",outcome="aborted"} 1',
  'docstokg_http_requests_total{host="b.example",role="metadata",outcome="throttled"} 1',
  'docstokg_http_refreshes_total{host="a.example",role="metadata"} 1',
  'docstokg_http_cache_total{host="a.example",role="metadata",result="hit"} 1',
  'docstokg_breaker_open_total{host="a.example",reason="failures"} 1',
  'docstokg_breaker_open_total{host="a.example",reason="retry-after"} 1',
  'docstokg_breaker_open_total{host="a.example",reason="cli-open"} 1',
  'docstokg_breaker_denied_total{host="a.example"} 1',
  'docstokg_telemetry_dropped_total{sink="jsonl"} 4',
  'docstokg_telemetry_dropped_total{sink="jsonl-2"} 1',
  "docstokg_http_in_flight 2",
  "docstokg_http_waiting 5",
];

/** A sum of seconds has an error in its last digits. */
function rounded(line: string): string {
  return line.replace(/ \d+\.\d{7,}$/, text => ` ${Number(Number(text).toFixed(6))}`);
}

const owner = { id: "metrics", dropped: () => ({ jsonl: 4, "jsonl-2": 1 }) };

test("Prometheus gets every metric by its name, in a new registry or a given one", async () => {
  const registry = new Registry();
  const sink = await prometheusSink({ registry });
  assert.equal(sink.registry, registry);
  sink.attach?.(owner);
  sink.watch?.({ snapshot: () => ({ inFlight: 2, waiting: 5 }) });
  for (const event of events) sink.take(event);
  const text = await registry.metrics();
  const printed = text.split("\n").map(rounded);
  for (const line of lines) assert.ok(printed.includes(line), `${line}\n${text}`);
  for (const name of Object.keys(METRICS) as MetricName[])
    assert.ok(
      printed.some(line => line.startsWith(`# HELP ${exportedName(name)} `)),
      name,
    );
});

test("a scrape reads the gauges of a hub without the state of every host", async t => {
  const { held, server, hub, arrived } = await heldServer(t, {
    limits: { defaults: { metadata: { rates: "10/SECOND", max_concurrent: 1 } } },
  });
  const snapshots = t.mock.method(hub, "snapshot").mock;
  const sink = await prometheusSink();
  sink.watch?.(hub);
  const calls = ["/1", "/2", "/3"].map(path => hub.request(server.origin + path));
  await arrived(1);
  const printed = (await sink.registry.metrics()).split("\n");
  assert.ok(printed.includes("docstokg_http_in_flight 1"));
  assert.ok(printed.includes("docstokg_http_waiting 2"));
  assert.equal(snapshots.callCount(), 0);
  for (const [index, call] of calls.entries()) {
    await arrived(index + 1);
    held[index]?.end();
    await (await call).body.text();
  }
});

test("a prefix replaces docstokg_, so that two programs do not collide, and a bad one is refused", async () => {
  const { registry } = await prometheusSink({ prefix: "harvest_" });
  const names = (await registry.metrics()).split("\n").filter(line => line.startsWith("# HELP"));
  assert.equal(names.length, Object.keys(METRICS).length);
  assert.ok(names.every(line => line.startsWith("# HELP harvest_")));
  for (const sink of [prometheusSink, otelSink])
    await assert.rejects(
      sink({ prefix: "my-app." }),
      /prefix must be letters, digits and _, such as "my_app_", not "my-app\."/,
    );
});

test("the number of time series is limited, however many hosts there are", async () => {
  const sink = await prometheusSink();
  for (let i = 0; i < 3000; i += 1) sink.take(acquire(i, `host-${i}.example`, "granted"));
  const series = (await sink.registry.metrics())
    .split("\n")
    .filter(line => line.startsWith("docstokg_rate_acquired_total{"));
  assert.equal(series.length, 1001);
  assert.ok(series.includes('docstokg_rate_acquired_total{host="(other)",role="metadata"} 2000'));
});

test("the partitions of a host are one host in the metrics, so that tenants take no label of a host", async t => {
  const sink = await prometheusSink();
  const server = await serve(t, (_, response) => response.end("ok"));
  const limit = { rates: "1000/SECOND", per: "partition", max_delay_ms: 1000 } as const;
  const hub = await hubFor(t, {
    cache: false,
    limits: { defaults: { metadata: limit } },
    breakers: { defaults: { per: "partition" } },
    telemetry: [createTelemetry({ sinks: [sink] }).listener],
  });
  for (const partition of ["one", "two", "three"]) await (await hub.fetch(server.origin, { partition })).text();
  sink.take(
    at(1, "breaker_cooldown_set", { host: `${host}#0123456789abcdef`, until: START_MS + 9, reason: "retry-after" }),
  );
  const series = (await sink.registry.metrics()).split("\n");
  assert.ok(series.includes('docstokg_rate_acquired_total{host="127.0.0.1",role="metadata"} 3'));
  assert.ok(series.includes(`docstokg_breaker_open_total{host="${host}",reason="retry-after"} 1`));
  assert.equal(series.filter(line => line.includes("#0")).length, 0);
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
  sink.attach?.(owner);
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
            : rounded(`${descriptor.name}_sum${at} ${(value as { sum: number }).sum}`);
        }),
      ),
    ),
  );
  for (const line of lines.filter(text => !text.startsWith("docstokg_rate_delay_seconds_count"))) {
    assert.ok(points.includes(line), `${line}\n${points.join("\n")}`);
  }
  const [first, , , refused] = spans.getFinishedSpans();
  assert.equal(spans.getFinishedSpans().length, 8);
  assert.equal(first?.attributes["server.address"], host);
  assert.equal(first?.attributes["http.response.status_code"], 200);
  assert.equal(refused?.attributes["error.type"], "DOCSTOKG_BREAKER_OPEN");
  await sink.close?.();
});

test("a subscriber of a diagnostics channel gets its events, and without subscribers no event is built", async t => {
  const sink = channelSink();
  const telemetry = createTelemetry({ sinks: [sink], runId: "r" });
  const received: unknown[] = [];
  const onMessage = (message: unknown) => received.push(message);
  assert.equal(sink.listensTo?.("http_request"), false);
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { telemetry: [telemetry.listener] });
  await (await hub.fetch(server.origin)).text();
  subscribe("docstokg:http_request", onMessage);
  assert.equal(sink.listensTo?.("http_request"), true);
  assert.equal(sink.listensTo?.("http_attempt"), false);
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
