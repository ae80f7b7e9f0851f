import { join } from "node:path";
import type { Time } from "../time/time.ts";
import { serveMetrics } from "./metrics-server.ts";
import { RUN_FILES } from "./reading/telemetry-file.ts";
import type { Sink } from "./sink.ts";
import { jsonlSink } from "./sinks/jsonl-sink.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";
import { sqliteSink } from "./sinks/sqlite-sink.ts";
import { createTelemetry, type Telemetry } from "./telemetry.ts";

export interface RunTelemetryOptions {
  /** Whose run it is: `docstokg run`. */
  readonly program: string;
  /** `telemetry.jsonl` or `telemetry.db` in the run's folder. @default "jsonl" */
  readonly format?: keyof typeof RUN_FILES | undefined;
  /** Serves metrics for Prometheus on this port of loopback, 0 for any. @default none */
  readonly metricsPort?: number | undefined;
  /** Beside those of the folder. */
  readonly sinks?: readonly Sink[] | undefined;
  readonly runId?: string | undefined;
  readonly time?: Time | undefined;
}

/** The telemetry of one run of a program. */
export interface RunTelemetry {
  readonly telemetry: Telemetry;
  /** What `docstokg report` reads. */
  readonly file: string;
  /** Where the metrics are served, if they are. */
  readonly metricsUrl: string | undefined;
  /** Writes what is left and closes everything. Call it when the hub is closed. */
  close(): Promise<void>;
}

/**
 * Keeps the telemetry of a run in a folder, where `docstokg report <folder>` finds it. Runs may share one. Hand
 * `telemetry.listener` to the hub, and the hub to `telemetry.watch`.
 */
export async function openRunTelemetry(folder: string, options: RunTelemetryOptions): Promise<RunTelemetry> {
  const { program, format = "jsonl", metricsPort, sinks = [], runId, time } = options;
  const file = join(folder, RUN_FILES[format]);
  const kept = await (format === "sqlite" ? sqliteSink(file, { time }) : jsonlSink(file, { time }));
  try {
    const prometheus = metricsPort === undefined ? undefined : await prometheusSink();
    const server =
      prometheus && metricsPort !== undefined ? await serveMetrics({ from: prometheus, port: metricsPort }) : undefined;
    const all = [kept, ...(prometheus === undefined ? [] : [prometheus]), ...sinks];
    const telemetry = createTelemetry({ sinks: all, program, runId, time });
    return {
      telemetry,
      file,
      metricsUrl: server?.url,
      close: async () => {
        await telemetry.close();
        await server?.close();
      },
    };
  } catch (error) {
    await kept.close?.();
    throw error;
  }
}
