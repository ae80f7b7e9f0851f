/**
 * What telemetry costs a request over a wire that answers at once: a rate that no network reaches. A case ends when its
 * sink has written all events, so that no cost is left out, and its queue is large enough to drop none. Processor time is
 * compared, of all threads, so that other programs matter little.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sink } from "../../src/telemetry/sink.ts";
import { jsonlSink } from "../../src/telemetry/sinks/jsonl-sink.ts";
import { otelSink } from "../../src/telemetry/sinks/otel-sink.ts";
import { prometheusSink } from "../../src/telemetry/sinks/prometheus-sink.ts";
import { sqliteSink } from "../../src/telemetry/sinks/sqlite-sink.ts";
import { EventCount } from "../hub/hubs.ts";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { NONE, telemetryRace } from "./telemetry-race.ts";

const NO_OP = "a listener that does nothing";
const JSONL_TIMES_MAX = 2;
/** More than a sample makes. */
const MAX_QUEUED = 1e7;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-bench-"));
  const options = { maxQueued: MAX_QUEUED };
  const sinks: readonly (readonly [string, Sink])[] = [
    ["jsonl", await jsonlSink(join(folder, "telemetry.jsonl"), options)],
    ["sqlite", await sqliteSink(join(folder, "telemetry.db"), options)],
    ["prometheus", await prometheusSink()],
    ["otel, with no SDK registered", await otelSink()],
  ];
  const { ratio, table } = await telemetryRace(
    [
      [NONE, []],
      [NO_OP, [new EventCount().listener]],
    ],
    sinks,
    NO_OP,
    isQuick,
  );
  rmSync(folder, { recursive: true, force: true });
  return {
    tables: [table],
    figures: [atMost(`no network: jsonl / ${NO_OP}`, ratio("jsonl", NO_OP), JSONL_TIMES_MAX)],
  };
}
