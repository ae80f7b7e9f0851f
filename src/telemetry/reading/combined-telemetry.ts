import type { TelemetryEvent } from "../events.ts";
import type { SkippedEvents } from "./skipped-events.ts";
import type { ListedRun, TelemetryFile } from "./telemetry-file.ts";

interface FoundRun {
  readonly run: ListedRun;
  readonly file: TelemetryFile;
}

/** The telemetry of a folder with a JSONL file and a database. A run that is in both is read where it has more events. */
export class CombinedTelemetry implements TelemetryFile {
  readonly path: string;
  readonly #files: readonly [TelemetryFile, TelemetryFile];
  #lastRead: TelemetryFile;

  constructor(path: string, files: readonly [TelemetryFile, TelemetryFile]) {
    this.path = path;
    this.#files = files;
    this.#lastRead = files[0];
  }

  get skipped(): SkippedEvents {
    return this.#lastRead.skipped;
  }

  async runs(): Promise<readonly ListedRun[]> {
    return (await this.#foundRuns()).map(({ run }) => run);
  }

  async *events(runId: string): AsyncGenerator<TelemetryEvent> {
    const found = (await this.#foundRuns()).find(({ run }) => run.runId === runId);
    this.#lastRead = found?.file ?? this.#files[0];
    yield* this.#lastRead.events(runId);
  }

  close(): void {
    for (const file of this.#files) file.close();
  }

  async #foundRuns(): Promise<readonly FoundRun[]> {
    const found = new Map<string, FoundRun>();
    for (const file of this.#files)
      for (const run of await file.runs()) {
        const other = found.get(run.runId);
        if (other === undefined || other.run.events < run.events) found.set(run.runId, { run, file });
      }
    return [...found.values()].sort((a, b) => a.run.firstMs - b.run.firstMs);
  }
}
