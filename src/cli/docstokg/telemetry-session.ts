import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../../errors.ts";
import { serveMetrics } from "../../telemetry/metrics-server.ts";
import { openRunTelemetry, type RunTelemetry } from "../../telemetry/run-telemetry.ts";
import { prometheusSink } from "../../telemetry/sinks/prometheus-sink.ts";
import { createTelemetry } from "../../telemetry/telemetry.ts";
import type { Io } from "../program.ts";
import type { RunSettings } from "./run-settings.ts";

/** What a run needs of its telemetry, whether there is a file of it or not. */
export type TelemetrySession = Pick<RunTelemetry, "telemetry" | "metricsUrl" | "close">;

/**
 * The telemetry of a run, beside its manifest, for `docstokg report`. A run whose telemetry cannot be kept goes on
 * without it, and says so; a port for metrics that cannot be had is a mistake of whoever asked for it.
 */
export async function openTelemetrySession(
  settings: RunSettings,
  program: string,
  io: Io,
): Promise<TelemetrySession | undefined> {
  const { manifest, metricsPort, keepsTelemetry } = settings;
  if (!keepsTelemetry && metricsPort === undefined) return undefined;
  const folder = dirname(manifest);
  try {
    await mkdir(folder, { recursive: true });
    const session = await (keepsTelemetry
      ? openRunTelemetry(folder, { program, metricsPort })
      : metricsOnly(program, metricsPort));
    if (session.metricsUrl !== undefined) io.stderr.write(`Metrics are at ${session.metricsUrl}\n`);
    return session;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (metricsPort !== undefined) throw new ConfigError([{ where: "--metrics-port", path: "", message: why }]);
    io.stderr.write(`There will be no telemetry of this run: ${why}\n`);
    return undefined;
  }
}

/** For who wants to be watched and to leave no record. */
async function metricsOnly(program: string, port = 0): Promise<TelemetrySession> {
  const prometheus = await prometheusSink();
  const server = await serveMetrics({ from: prometheus, port });
  const telemetry = createTelemetry({ sinks: [prometheus], program });
  const close = async () => {
    await telemetry.close();
    await server.close();
  };
  return { telemetry, metricsUrl: server.url, close };
}
