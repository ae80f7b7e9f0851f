import type { TelemetryEvent } from "../events.ts";
import { CALL_EVENTS } from "./call-events.ts";
import { jsonlEnvelopes, jsonlEvents } from "./jsonl-events.ts";
import { SkippedEventCounter } from "./skipped-events.ts";
import type { ListedRun, TelemetryFile } from "./telemetry-file.ts";

/** Telemetry that `jsonlSink` has written. */
export class JsonlTelemetry implements TelemetryFile {
  readonly path: string;
  skipped = new SkippedEventCounter();

  constructor(path: string) {
    this.path = path;
  }

  async runs(): Promise<readonly ListedRun[]> {
    const runs = new Map<string, ListedRun>();
    for await (const { runId, ts, type } of jsonlEnvelopes(this.path)) {
      const { firstMs = ts, lastMs = ts, events = 0, hasCalls = false } = runs.get(runId) ?? {};
      runs.set(runId, {
        runId,
        firstMs: Math.min(firstMs, ts),
        lastMs: Math.max(lastMs, ts),
        events: events + 1,
        hasCalls: hasCalls || CALL_EVENTS.has(type),
      });
    }
    return [...runs.values()].sort((a, b) => a.firstMs - b.firstMs);
  }

  async *events(runId: string): AsyncGenerator<TelemetryEvent> {
    this.skipped = new SkippedEventCounter();
    yield* jsonlEvents(this.path, this.skipped, runId);
  }

  close(): void {
    // The files are open only while they are read.
  }
}
