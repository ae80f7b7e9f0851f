import type { Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../../errors.ts";
import { codeOf } from "../../http/error-code.ts";
import type { TelemetryEvent } from "../events.ts";
import { CombinedTelemetry } from "./combined-telemetry.ts";
import { jsonlFiles } from "./jsonl-events.ts";
import { JsonlTelemetry } from "./jsonl-telemetry.ts";
import type { SkippedEvents } from "./skipped-events.ts";
import { openSqliteTelemetry } from "./sqlite-telemetry.ts";

/** The names of the telemetry file in the folder of a run. */
export const RUN_FILES = { jsonl: "telemetry.jsonl", sqlite: "telemetry.db" } as const;

/** A run whose events are in a telemetry file. */
export interface ListedRun {
  /** The id of the run. */
  readonly runId: string;
  /** The time of its first event, in epoch ms. */
  readonly firstMs: number;
  /** The time of its last event, in epoch ms. */
  readonly lastMs: number;
  /** Number of its events, including types that this version does not know. */
  readonly events: number;
  /** Whether the run has made a call. False for a run that found nothing to do. */
  readonly hasCalls: boolean;
}

/** A telemetry file that `jsonlSink` or `sqliteSink` has written. */
export interface TelemetryFile {
  /** The path of the file; for a folder, of the file in it, or the folder itself if it has a JSONL file and a database. */
  readonly path: string;
  /** The events that the last call of `events` has skipped. */
  readonly skipped: SkippedEvents;
  /** All runs in the file, in the order of their first event. */
  runs(): Promise<readonly ListedRun[]>;
  /** The events of a run. */
  events(runId: string): AsyncIterable<TelemetryEvent>;
  /** Closes the database. Has no effect for JSONL. */
  close(): void;
}

/**
 * Opens a telemetry file, or that in the folder of a run: with a JSONL file and a database in the folder, the runs of
 * both. JSONL and SQLite are distinguished by their content.
 * Rejects with a ConfigError when there is no file, or when it is another program's database.
 */
export async function openTelemetryFile(path: string): Promise<TelemetryFile> {
  const stats = await statIfExists(path);
  if (stats?.isDirectory()) {
    const [jsonl, sqlite] = [join(path, RUN_FILES.jsonl), join(path, RUN_FILES.sqlite)];
    const [hasJsonl, hasSqlite] = await Promise.all([exists(jsonl), exists(sqlite)]);
    if (hasJsonl && hasSqlite)
      return new CombinedTelemetry(path, [await openTelemetryFile(jsonl), await openTelemetryFile(sqlite)]);
    if (hasJsonl || hasSqlite) return openTelemetryFile(hasJsonl ? jsonl : sqlite);
    throw notFound(path, `no telemetry in this folder: expected ${Object.values(RUN_FILES).join(" or ")}`);
  }
  if (!(await exists(path))) throw notFound(path, "no such file");
  return stats !== undefined && (await isDatabase(path)) ? openSqliteTelemetry(path) : new JsonlTelemetry(path);
}

/** A file that has just been rotated does not exist until the next event is written; its rotated files do. */
async function exists(path: string): Promise<boolean> {
  return (await statIfExists(path)) !== undefined || (await jsonlFiles(path).catch(() => [])).length > 0;
}

async function statIfExists(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return undefined;
    throw error;
  }
}

async function isDatabase(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(16), 0, 16, 0);
    return buffer.toString("latin1") === "SQLite format 3\0";
  } finally {
    await file.close();
  }
}

function notFound(where: string, message: string): ConfigError {
  return new ConfigError([{ where, path: "", message }]);
}
