import { ConfigError, messageOf } from "../../errors.ts";
import { makeFolder } from "../../files/make-folder.ts";
import { serveMetrics } from "../../telemetry/metrics-server.ts";
import { openRunTelemetry } from "../../telemetry/run-telemetry.ts";
import type { Sink } from "../../telemetry/sink.ts";
import { prometheusSink } from "../../telemetry/sinks/prometheus-sink.ts";
import { createTelemetry, type Telemetry } from "../../telemetry/telemetry.ts";
import type { Io } from "../program.ts";
import { telemetryFolderOf } from "./path-flags.ts";
import { portError } from "./port-error.ts";
import type { RunSettings } from "./run-settings.ts";

/** The metrics of `--metrics-port`. */
export interface RunMetrics extends AsyncDisposable {
  readonly sink: Sink;
  readonly url: string;
}

/** Listens on the port. Rejects as `portError` says if that fails, and with a ConfigError without prom-client. */
export async function openMetrics({ metricsPort: port }: RunSettings): Promise<RunMetrics | undefined> {
  if (port === undefined) return undefined;
  try {
    const sink = await prometheusSink();
    const { url, close } = await serveMetrics({ from: sink, port });
    return { sink, url, [Symbol.asyncDispose]: close };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw portError(error.problems[0]?.message ?? error.message, error.cause, "--metrics-port");
  }
}

/**
 * Records telemetry beside the manifest, for `docstokg report`. If it cannot be recorded, the run continues without it
 * and prints why.
 */
export async function openTelemetrySession(
  settings: RunSettings,
  program: string,
  metrics: RunMetrics | undefined,
  io: Io,
): Promise<Telemetry | undefined> {
  const sinks = metrics === undefined ? [] : [metrics.sink];
  const recorded = settings.keepsTelemetry ? await recordedTelemetry(settings, program, sinks, io) : undefined;
  if (metrics === undefined) return recorded;
  io.stderr.write(`Metrics: ${metrics.url}\n`);
  return recorded ?? createTelemetry({ sinks, program });
}

async function recordedTelemetry(
  settings: RunSettings,
  program: string,
  sinks: readonly Sink[],
  io: Io,
): Promise<Telemetry | undefined> {
  const folder = telemetryFolderOf(settings);
  try {
    makeFolder(folder);
    return (await openRunTelemetry(folder, { program, sinks })).telemetry;
  } catch (error) {
    io.stderr.write(`Telemetry is not recorded for this run: ${messageOf(error)}\n`);
    return undefined;
  }
}
