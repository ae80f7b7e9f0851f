/** `docstokg/telemetry`: what a hub tells, kept, counted and added up. */
export type { Listener } from "../gate/listeners.ts";
export type { HubEvent } from "../http/hub-options.ts";
export type { Time, Timer } from "../time/time.ts";
export type { Envelope, EventOf, EventType, TelemetryEvent } from "./events.ts";
export { type ListedRun, openTelemetryFile, type TelemetryFile } from "./reading/telemetry-file.ts";
export { type RunReport, reportOn } from "./report/run-report.ts";
export { openRunTelemetry, type RunTelemetry, type RunTelemetryOptions } from "./run-telemetry.ts";
export { type MetricsServer, type ServeMetricsOptions, serveMetrics } from "./serve-metrics.ts";
export type { Sink, Watched } from "./sink.ts";
export { channelSink } from "./sinks/channel-sink.ts";
export { type JsonlSinkOptions, jsonlSink } from "./sinks/jsonl-sink.ts";
export { otelSink } from "./sinks/otel-sink.ts";
export {
  type MetricsRegistry,
  type PrometheusSink,
  type PrometheusSinkOptions,
  prometheusSink,
} from "./sinks/prometheus-sink.ts";
export type { QueueOptions } from "./sinks/queued-sink.ts";
export { sqliteSink } from "./sinks/sqlite-sink.ts";
export type { DelaySummary, HostSummary, LaneSummary, Ranked, RunSummary } from "./summary/run-summary.ts";
export { summarize } from "./summary/run-tally.ts";
export { createTelemetry, type Telemetry, type TelemetryOptions } from "./telemetry.ts";
