import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { ConfigError } from "../../errors.ts";
import { messageOf } from "../../stores/sqlite/sqlite-errors.ts";
import type { TelemetryEvent } from "../events.ts";
import { EVENT_TABLES, TELEMETRY_FORMAT } from "../sqlite-tables.ts";
import { jsonlEnvelopes, jsonlEvents, jsonlFiles } from "./jsonl-events.ts";
import { SkippedEvents } from "./skipped-events.ts";
import { eventsOf } from "./sqlite-events.ts";

/** What a run's folder holds: one of these. */
export const RUN_FILES = { jsonl: "telemetry.jsonl", sqlite: "telemetry.db" } as const;

export interface ListedRun {
  readonly runId: string;
  readonly firstMs: number;
  readonly lastMs: number;
  /** Those that this version does not know included. */
  readonly events: number;
}

/** A file of telemetry, whichever sink has written it. */
export interface TelemetryFile {
  readonly path: string;
  readonly skipped: SkippedEvents;
  /** In the order in which they began. */
  runs(): Promise<readonly ListedRun[]>;
  events(runId: string): AsyncIterable<TelemetryEvent>;
  close(): void;
}

/** A file, or the folder of a run. Rejects with a ConfigError that says what would be valid. */
export async function openTelemetryFile(path: string): Promise<TelemetryFile> {
  const there = await stat(path).catch(() => undefined);
  if (there?.isDirectory()) {
    const files = Object.values(RUN_FILES);
    for (const name of files) {
      const inside = join(path, name);
      if ((await stat(inside).catch(() => undefined)) !== undefined) return openTelemetryFile(inside);
    }
    throw notReadable(path, `there is no telemetry in this folder: neither ${files.join(" nor ")}`);
  }
  // The file itself may just have been put aside for a new one.
  if (there === undefined && (await jsonlFiles(path).catch(() => [])).length === 0)
    throw notReadable(path, "there is no such file");
  return there !== undefined && (await isDatabase(path)) ? openDatabase(path) : new JsonlTelemetry(path);
}

class JsonlTelemetry implements TelemetryFile {
  readonly path: string;
  skipped = new SkippedEvents();

  constructor(path: string) {
    this.path = path;
  }

  async runs(): Promise<readonly ListedRun[]> {
    const runs = new Map<string, ListedRun>();
    for await (const { runId, ts } of jsonlEnvelopes(await jsonlFiles(this.path))) {
      const { firstMs = ts, lastMs = ts, events = 0 } = runs.get(runId) ?? {};
      runs.set(runId, {
        runId,
        firstMs: Math.min(firstMs, ts),
        lastMs: Math.max(lastMs, ts),
        events: events + 1,
      });
    }
    return [...runs.values()].sort((a, b) => a.firstMs - b.firstMs);
  }

  async *events(runId: string): AsyncGenerator<TelemetryEvent> {
    this.skipped = new SkippedEvents();
    yield* jsonlEvents(await jsonlFiles(this.path), this.skipped, runId);
  }

  close(): void {
    // Its files are closed when they are read.
  }
}

class SqliteTelemetry implements TelemetryFile {
  readonly path: string;
  skipped = new SkippedEvents();
  readonly #db: DatabaseSync;

  constructor(path: string, db: DatabaseSync) {
    this.path = path;
    this.#db = db;
  }

  async runs(): Promise<readonly ListedRun[]> {
    const all = EVENT_TABLES.map(table => `SELECT run_id, ts FROM ${table}`).join(" UNION ALL ");
    const rows = this.#db
      .prepare(
        `SELECT run_id AS runId, min(ts) AS firstMs, max(ts) AS lastMs, count(*) AS events
         FROM (${all}) GROUP BY run_id ORDER BY firstMs`,
      )
      .all();
    return rows as unknown as ListedRun[];
  }

  events(runId: string): AsyncIterable<TelemetryEvent> {
    this.skipped = new SkippedEvents();
    return eventsOf(this.#db, runId, this.skipped);
  }

  close(): void {
    this.#db.close();
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

/** Opened to be read only: a report never changes what it reports on. */
async function openDatabase(path: string): Promise<TelemetryFile> {
  const { DatabaseSync } = await import("node:sqlite");
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true });
    const application = db.prepare("PRAGMA application_id").get()?.["application_id"];
    if (application !== TELEMETRY_FORMAT.applicationId) throw new Error("it belongs to another program");
    return new SqliteTelemetry(path, db);
  } catch (cause) {
    db?.close();
    throw notReadable(path, `no telemetry can be read from this database: ${messageOf(cause)}`, cause);
  }
}

function notReadable(where: string, message: string, cause?: unknown): ConfigError {
  return new ConfigError([{ where, path: "", message }], { cause });
}
