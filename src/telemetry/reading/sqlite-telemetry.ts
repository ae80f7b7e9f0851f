import type { DatabaseSync } from "node:sqlite";
import { ConfigError, messageOf } from "../../errors.ts";
import { openReadOnly } from "../../stores/sqlite/open-read-only.ts";
import type { TelemetryEvent } from "../events.ts";
import { TELEMETRY_FORMAT } from "../sqlite-tables.ts";
import { SkippedEventCounter } from "./skipped-events.ts";
import { eventsOf, eventTablesOf } from "./sqlite-events.ts";
import type { ListedRun, TelemetryFile } from "./telemetry-file.ts";

/** Telemetry that `sqliteSink` has written. */
class SqliteTelemetry implements TelemetryFile {
  readonly path: string;
  skipped = new SkippedEventCounter();
  readonly #db: DatabaseSync;

  constructor(path: string, db: DatabaseSync) {
    this.path = path;
    this.#db = db;
  }

  async runs(): Promise<readonly ListedRun[]> {
    try {
      const tables = eventTablesOf(this.#db);
      if (tables.length === 0) return [];
      const all = tables.map(table => `SELECT run_id, ts FROM ${table}`).join(" UNION ALL ");
      const rows = this.#db
        .prepare(
          `SELECT run_id AS runId, min(ts) AS firstMs, max(ts) AS lastMs, count(*) AS events
           FROM (${all}) GROUP BY run_id ORDER BY firstMs`,
        )
        .all();
      return rows as unknown as ListedRun[];
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }

  async *events(runId: string): AsyncGenerator<TelemetryEvent> {
    this.skipped = new SkippedEventCounter();
    try {
      yield* eventsOf(this.#db, runId, this.skipped);
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }

  close(): void {
    this.#db.close();
  }
}

/**
 * Opens the file read-only. Rejects with a ConfigError when it is not a telemetry database. Reading it rejects with a
 * ConfigError when it is damaged.
 */
export async function openSqliteTelemetry(path: string): Promise<TelemetryFile> {
  const { DatabaseSync } = await import("node:sqlite");
  let db: DatabaseSync | undefined;
  try {
    ({ db } = openReadOnly(DatabaseSync, path));
    const application = db.prepare("PRAGMA application_id").get()?.["application_id"];
    if (application !== TELEMETRY_FORMAT.applicationId) throw new Error("it was not written by docstokg telemetry");
    return new SqliteTelemetry(path, db);
  } catch (cause) {
    db?.close();
    throw unreadable(path, cause);
  }
}

/** The file belongs to another program, is damaged, or has values that no sink has written. */
function unreadable(where: string, cause: unknown): ConfigError {
  const message = `cannot read telemetry from this database: ${messageOf(cause)}`;
  return new ConfigError([{ where, path: "", message }], { cause });
}
