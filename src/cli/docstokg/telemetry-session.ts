import { ConfigError, messageOf } from "../../errors.ts";
import { makeFolder } from "../../files/make-folder.ts";
import { serveMetrics } from "../../telemetry/metrics-server.ts";
import { openRunTelemetry, type RunTelemetry } from "../../telemetry/run-telemetry.ts";
import { prometheusSink } from "../../telemetry/sinks/prometheus-sink.ts";
import { createTelemetry } from "../../telemetry/telemetry.ts";
import type { Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { telemetryFolderOf } from "./path-flags.ts";
import type { RunSettings } from "./run-settings.ts";

/** The telemetry of a run, with or without a telemetry file. */
export type TelemetrySession = Pick<RunTelemetry, "telemetry" | "metricsUrl" | "close">;

/**
 * Records telemetry beside the manifest, for `docstokg report`. If it cannot be recorded, the run continues without it
 * and prints why. If the metrics port cannot be opened, the run fails with a ConfigError.
 */
export async function openTelemetrySession(
  settings: RunSettings,
  program: string,
  io: Io,
): Promise<TelemetrySession | undefined> {
  const { metricsPort, keepsTelemetry } = settings;
  if (!keepsTelemetry && metricsPort === undefined) return undefined;
  const folder = telemetryFolderOf(settings);
  try {
    makeFolder(folder);
    const session = await (keepsTelemetry
      ? openRunTelemetry(folder, { program, metricsPort })
      : metricsOnly(program, metricsPort));
    if (session.metricsUrl !== undefined) io.stderr.write(`Metrics: ${session.metricsUrl}\n`);
    return session;
  } catch (error) {
    if (metricsPort !== undefined) throwIfConfigError(error);
    io.stderr.write(`Telemetry is not recorded for this run: ${messageOf(error)}\n`);
    return metricsPort === undefined ? undefined : metricsSession(program, metricsPort, io);
  }
}

async function metricsSession(program: string, port: number, io: Io): Promise<TelemetrySession> {
  const session = await metricsOnly(program, port).catch(error => {
    throwIfConfigError(error);
    throw error;
  });
  io.stderr.write(`Metrics: ${session.metricsUrl}\n`);
  return session;
}

/** A ConfigError means that the port cannot be opened, or that prom-client is not installed. */
function throwIfConfigError(error: unknown): void {
  if (error instanceof ConfigError) throw usageError("--metrics-port", error.problems[0]?.message ?? error.message);
}

/** `--no-telemetry --metrics-port`: metrics are served, nothing is recorded. */
async function metricsOnly(program: string, port = 0): Promise<TelemetrySession> {
  const prometheus = await prometheusSink();
  const server = await serveMetrics({ from: prometheus, port });
  const telemetry = createTelemetry({ sinks: [prometheus], program });
  const close = async () => {
    try {
      await telemetry.close();
    } finally {
      await server.close();
    }
  };
  return { telemetry, metricsUrl: server.url, close };
}
