/** The tables that are copied from one backend to another. */

export type TableRow = Readonly<Record<string, string | number | null>>;

/**
 * In the order in which rows can be inserted. Not copied are the state of running processes (`taken_by`, workers),
 * robots.txt files, and the settings of runs, which only PostgreSQL has. The names `place` and `shelving` are explained in
 * `sqlite/sqlite-manifest-file.ts`.
 */
export const TABLES = {
  runs: ["id", "command", "flags", "started_ms", "ended_ms", "state"],
  files: ["sha256", "path", "bytes", "media_type", "added_ms", "flag"],
  works: [
    ...[
      "id",
      "key",
      "ids",
      "title",
      "year",
      "metadata",
      "run",
      "state",
      "reason",
      "message",
      "sha256",
      "url",
      "resolver",
    ],
    ...["licence", "version", "queue", "not_before_ms", "progress", "inherited", "merged_into", "added_ms"],
    "ended_ms",
  ],
  work_ids: ["id", "work"],
  work_files: ["work", "role", "sha256", "url", "resolver"],
  attempts: [
    ...["id", "work", "run", "step", "resolver", "url", "status", "reason", "message", "bytes", "sha256"],
    ...["elapsed_ms", "ended_ms"],
  ],
  sources: ["place", "sha256", "etag", "last_modified", "run"],
  parts: ["place", "work", "file", "etag", "total_bytes", "shelving"],
} as const;

export type TableName = keyof typeof TABLES;
export const TABLE_NAMES = Object.keys(TABLES) as readonly TableName[];
export const ROWS_PER_PAGE = 1000;

/** The rows of one table, in pages. */
export interface TablePage {
  readonly table: TableName;
  readonly rows: readonly TableRow[];
}

/** Reads and writes complete manifests. */
export interface ManifestTables {
  /** Every row of every table, as of one instant, in the order of `TABLES`. Memory stays bounded. */
  read(): AsyncIterable<TablePage>;
  /** Adds rows to an empty manifest, in one transaction. */
  write(pages: AsyncIterable<TablePage>): Promise<void>;
}
