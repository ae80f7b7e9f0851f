import type { SQLOutputValue } from "node:sqlite";
import {
  type ManifestTables,
  ROWS_PER_PAGE,
  TABLE_NAMES,
  TABLES,
  type TablePage,
  type TableRow,
} from "../manifest-tables.ts";
import type { OpenManifestFile } from "./sqlite-manifest-file.ts";

/** Reads and writes all rows of a manifest file. */
export class SqliteManifestTables implements ManifestTables {
  readonly #file: OpenManifestFile;

  constructor(file: OpenManifestFile) {
    this.#file = file;
  }

  async *read(): AsyncIterable<TablePage> {
    using connection = await this.#file.connect();
    const db = connection.content;
    db.exec("BEGIN");
    try {
      for (const table of TABLE_NAMES) {
        let rows: TableRow[] = [];
        for (const row of db.prepare(`SELECT ${TABLES[table].join(", ")} FROM ${table}`).iterate()) {
          rows.push(tableRow(row));
          if (rows.length < ROWS_PER_PAGE) continue;
          yield { table, rows };
          rows = [];
        }
        if (rows.length > 0) yield { table, rows };
      }
    } finally {
      db.exec("ROLLBACK");
    }
  }

  async write(pages: AsyncIterable<TablePage>): Promise<void> {
    const { db } = this.#file;
    db.exec("BEGIN IMMEDIATE; PRAGMA defer_foreign_keys = ON");
    try {
      for await (const { table, rows } of pages) {
        const columns: readonly string[] = TABLES[table];
        const insert = db.prepare(
          `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
        );
        for (const row of rows) insert.run(...columns.map(column => row[column] ?? null));
      }
      db.exec("COMMIT");
    } finally {
      if (db.isTransaction) db.exec("ROLLBACK");
    }
  }
}

function tableRow(row: Readonly<Record<string, SQLOutputValue>>): TableRow {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      typeof value === "number" || value === null ? value : String(value),
    ]),
  );
}
