import type { DatabaseSync } from "node:sqlite";
import { ConfigError, messageOf } from "../../errors.ts";
import { ReadOnlyFile } from "../../stores/sqlite/read-only-file.ts";
import type { TelemetryEvent } from "../events.ts";
import { TELEMETRY_FORMAT } from "../sqlite-tables.ts";
import { CALL_EVENTS } from "./call-events.ts";
import { SkippedEventCounter } from "./skipped-events.ts";
import { eventsOf, eventTablesOf } from "./sqlite-events.ts";
import type { ListedRun, TelemetryFile } from "./telemetry-file.ts";

/** Telemetry that `sqliteSink` has written. */
class SqliteTelemetry implements TelemetryFile {
  readonly path: string;
  skipped = new SkippedEventCounter();
  readonly #file: ReadOnlyFile<DatabaseSync>;

  constructor(path: string) {
    this.path = path;
    this.#file = new ReadOnlyFile(path, db => {
      const application = db.prepare("PRAGMA application_id").get()?.["application_id"];
      if (application !== TELEMETRY_FORMAT.applicationId) throw new Error("it was not written by docstokg telemetry");
      return db;
    });
  }

  /** Throws a ConfigError when the file is not a telemetry database. */
  check(): void {
    try {
      this.#file.connect()[Symbol.dispose]();
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }

  async runs(): Promise<readonly ListedRun[]> {
    try {
      using connection = this.#file.connect();
      const db = connection.content;
      const tables = eventTablesOf(db);
      if (tables.length === 0) return [];
      const callEvents = [...CALL_EVENTS].map(type => `'${type}'`).join(", ");
      const all = tables
        .map(table => `SELECT run_id, ts, event_type IN (${callEvents}) AS is_call FROM ${table}`)
        .join(" UNION ALL ");
      const rows = db
        .prepare(
          `SELECT run_id AS runId, min(ts) AS firstMs, max(ts) AS lastMs, count(*) AS events,
             max(is_call) AS hasCalls
           FROM (${all}) GROUP BY run_id ORDER BY firstMs`,
        )
        .all();
      return rows.map(row => ({ ...row, hasCalls: row["hasCalls"] === 1 }) as unknown as ListedRun);
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }

  async *events(runId: string): AsyncGenerator<TelemetryEvent> {
    this.skipped = new SkippedEventCounter();
    try {
      using connection = this.#file.connect();
      yield* eventsOf(connection.content, runId, this.skipped);
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }

  close(): void {
    this.#file.close();
  }
}

/**
 * Opens the file read-only. Rejects with a ConfigError when it is not a telemetry database. Reading it rejects with a
 * ConfigError when it is damaged.
 */
export async function openSqliteTelemetry(path: string): Promise<TelemetryFile> {
  const telemetry = new SqliteTelemetry(path);
  telemetry.check();
  return telemetry;
}

/** The file belongs to another program, is damaged, or has values that no sink has written. */
function unreadable(where: string, cause: unknown): ConfigError {
  const message = `cannot read telemetry from this database: ${messageOf(cause)}`;
  return new ConfigError([{ where, path: "", message }], { cause });
}
