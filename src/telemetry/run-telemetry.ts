import { join } from "node:path";
import type { Time } from "../time/time.ts";
import { type MetricsServer, serveMetrics } from "./metrics-server.ts";
import { RUN_FILES } from "./reading/telemetry-file.ts";
import type { Sink } from "./sink.ts";
import { jsonlSink } from "./sinks/jsonl-sink.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";
import { sqliteSink } from "./sinks/sqlite-sink.ts";
import { createTelemetry, type Telemetry } from "./telemetry.ts";

/** Options of `openRunTelemetry`. */
export interface RunTelemetryOptions {
  /** The name of the program, such as `docstokg run`. */
  readonly program: string;
  /** `jsonl` writes `telemetry.jsonl`, `sqlite` writes `telemetry.db`. @default "jsonl" */
  readonly format?: "jsonl" | "sqlite" | undefined;
  /** Serves Prometheus metrics on this port of 127.0.0.1; 0 for any free port. @default no server */
  readonly metricsPort?: number | undefined;
  /** Further sinks. @default none */
  readonly sinks?: readonly Sink[] | undefined;
  /** 1 to 128 letters, digits, `.`, `_`, `:` and `-`. @default the time and random digits */
  readonly runId?: string | undefined;
  /** The clock and the timers, for tests. @default systemTime */
  readonly time?: Time | undefined;
}

/** The telemetry of one run of a program. */
export interface RunTelemetry {
  /** Pass `telemetry.listener` to the hub. */
  readonly telemetry: Telemetry;
  /** The path of the file, for `docstokg report`. */
  readonly file: string;
  /** The URL of the metrics; undefined without `metricsPort`. */
  readonly metricsUrl: string | undefined;
  /** Writes the queued events and closes the sinks and the server. Call it after `hub.close()`. */
  close(): Promise<void>;
}

/**
 * Writes the telemetry of a run to a file in a folder, where `docstokg report <folder>` finds it. Several runs may use one
 * folder. Pass `telemetry.listener` to the hub, and the hub to `telemetry.watch`.
 */
export async function openRunTelemetry(folder: string, options: RunTelemetryOptions): Promise<RunTelemetry> {
  const { program, format = "jsonl", metricsPort, sinks = [], runId, time } = options;
  const file = join(folder, RUN_FILES[format]);
  let server: MetricsServer | undefined;
  let fileSink: Sink | undefined;
  try {
    const prometheus = metricsPort === undefined ? undefined : await prometheusSink();
    // First, because no file may be created if the port is in use.
    if (prometheus !== undefined && metricsPort !== undefined)
      server = await serveMetrics({ from: prometheus, port: metricsPort });
    fileSink = await (format === "sqlite" ? sqliteSink(file, { time }) : jsonlSink(file, { time }));
    const all = [fileSink, ...(prometheus === undefined ? [] : [prometheus]), ...sinks];
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
    await server?.close();
    await fileSink?.close?.();
    throw error;
  }
}
