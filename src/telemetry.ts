/** `docstokg/telemetry`: writes the events of a hub to sinks, and summarizes them. */

export type { HubEvent } from "./http/hub-options.ts";
export type { Listener } from "./listeners.ts";
export type { OpenReasonKind } from "./telemetry/breaker-openings.ts";
export type { CallOutcome } from "./telemetry/call-outcome.ts";
export type {
  Envelope,
  EventBody,
  EventBodyOf,
  EventOf,
  EventType,
  RunEvent,
  TelemetryEvent,
} from "./telemetry/events.ts";
export { type MetricsServer, type ServeMetricsOptions, serveMetrics } from "./telemetry/metrics-server.ts";
export type { SkippedEvents } from "./telemetry/reading/skipped-events.ts";
export { type ListedRun, openTelemetryFile, type TelemetryFile } from "./telemetry/reading/telemetry-file.ts";
export type { SkippedCounts } from "./telemetry/report/report-page.ts";
export { type RunReport, reportOn } from "./telemetry/report/run-report.ts";
export { openRunTelemetry, type RunTelemetry, type RunTelemetryOptions } from "./telemetry/run-telemetry.ts";
export type { GaugeSource, Gauges, Sink, SinkOwner } from "./telemetry/sink.ts";
export { channelSink } from "./telemetry/sinks/channel-sink.ts";
export { type JsonlSinkOptions, jsonlSink } from "./telemetry/sinks/jsonl-sink.ts";
export { type OtelSinkOptions, otelSink } from "./telemetry/sinks/otel-sink.ts";
export {
  type MetricsRegistry,
  type PrometheusSink,
  type PrometheusSinkOptions,
  prometheusSink,
} from "./telemetry/sinks/prometheus-sink.ts";
export type { QueueOptions } from "./telemetry/sinks/queued-sink.ts";
export { sqliteSink } from "./telemetry/sinks/sqlite-sink.ts";
export type {
  BreakerHostSummary,
  DecisionSummary,
  DelaySummary,
  HostSummary,
  KeySummary,
  Ranked,
  RunSummary,
  ShadowSummary,
} from "./telemetry/summary/run-summary.ts";
export { summarize } from "./telemetry/summary/run-tally.ts";
export { createTelemetry, type Telemetry, type TelemetryOptions } from "./telemetry/telemetry.ts";
export type { Time, Timer } from "./time/time.ts";
