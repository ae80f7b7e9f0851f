import {
  attemptLine,
  type FailedWork,
  FILE_KINDS,
  type FileKindCount,
  failedWorkOfRow,
  fileKindOfRow,
  HISTORY_ATTEMPTS,
  HISTORY_WORK,
  historyOfRows,
  LATEST_FLAGS,
  type ManifestReport,
  type ManifestReports,
  RECORD_COLUMNS,
  RESOLVER_COUNTS,
  type ResolverCount,
  type ResolverWorkload,
  recordOfRow,
  reportOfRows,
  resolverCountOfRow,
  type StoredFileRow,
  storedFileOfRow,
  WORKLOADS,
  type WorkHistory,
  type WorkRecord,
  workloadOfRow,
} from "../manifest-reports.ts";
import type { ManifestWorker } from "../manifest-workers.ts";
import type { OpenManifestFile } from "./sqlite-manifest-file.ts";

const FILES_OF_WORK = `SELECT path, role, sha256, bytes, media_type, flag FROM work_files JOIN files USING (sha256)
  WHERE work = ? ORDER BY role, path`;

/** Reads reports from the tables of a manifest file. */
export class SqliteReports implements ManifestReports {
  readonly #file: Pick<OpenManifestFile, "connect">;

  constructor(file: Pick<OpenManifestFile, "connect">) {
    this.#file = file;
  }

  async report(run?: number): Promise<ManifestReport> {
    using connection = await this.#file.connect();
    const db = connection.content;
    const only = run ?? null;
    return reportOfRows({
      counts: db
        .prepare(
          `SELECT CASE WHEN merged_into IS NULL THEN state ELSE 'merged' END AS state, count(*) AS works FROM works
           WHERE ?1 IS NULL OR run = ?1 GROUP BY 1`,
        )
        .all(only),
      reasons: db
        .prepare(
          `SELECT state, reason, count(*) AS works FROM works
           WHERE state <> 'pending' AND merged_into IS NULL AND (?1 IS NULL OR run = ?1)
           GROUP BY state, reason ORDER BY state, works DESC, reason`,
        )
        .all(only),
      resolvers: db
        .prepare(
          `SELECT resolver, count(*) AS works FROM works
           WHERE state = 'done' AND merged_into IS NULL AND (?1 IS NULL OR run = ?1)
           GROUP BY resolver ORDER BY works DESC, resolver`,
        )
        .all(only),
      files: db
        .prepare(
          `SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM files
           WHERE sha256 IN (SELECT work_files.sha256 FROM work_files JOIN works ON works.id = work
             WHERE works.sha256 IS NOT NULL AND (?1 IS NULL OR run = ?1))`,
        )
        .get(only),
      runs: db.prepare("SELECT id, command, state, started_ms, ended_ms FROM runs ORDER BY id DESC LIMIT 10").all(),
    });
  }

  async latestFlags(): Promise<string | undefined> {
    using connection = await this.#file.connect();
    const row = connection.content.prepare(LATEST_FLAGS).get();
    return row && String(row["flags"]);
  }

  async storedFiles(): Promise<readonly StoredFileRow[]> {
    using connection = await this.#file.connect();
    return connection.content
      .prepare(
        `SELECT path, min(role) AS role, files.sha256, bytes, count(*) AS works FROM files JOIN work_files USING (sha256)
         JOIN works ON works.id = work WHERE state = 'done' GROUP BY files.sha256 ORDER BY path`,
      )
      .all()
      .map(storedFileOfRow);
  }

  async resolverCounts(): Promise<readonly ResolverCount[]> {
    using connection = await this.#file.connect();
    return connection.content.prepare(RESOLVER_COUNTS).all().map(resolverCountOfRow);
  }

  async workloads(): Promise<readonly ResolverWorkload[]> {
    using connection = await this.#file.connect();
    return connection.content.prepare(WORKLOADS).all().map(workloadOfRow);
  }

  async fileKinds(): Promise<readonly FileKindCount[]> {
    using connection = await this.#file.connect();
    return connection.content.prepare(FILE_KINDS).all().map(fileKindOfRow);
  }

  async failedWorks(limit: number): Promise<readonly FailedWork[]> {
    using connection = await this.#file.connect();
    return connection.content
      .prepare("SELECT key, reason, message FROM works WHERE state = 'failed' ORDER BY ended_ms DESC, id LIMIT ?")
      .all(limit)
      .map(failedWorkOfRow);
  }

  async *attemptLines(): AsyncIterable<string> {
    using connection = await this.#file.connect();
    const db = connection.content;
    const attempts = db.prepare(
      `SELECT run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms FROM attempts
       WHERE work = ? ORDER BY id`,
    );
    const works = db.prepare(
      `SELECT works.id, key, ids, title, year, run, state, reason, message, url, resolver, licence, version,
         works.added_ms, ended_ms, works.sha256, files.path, files.bytes, files.media_type, files.flag, metadata,
         merged_into
       FROM works LEFT JOIN files ON files.sha256 = works.sha256 ORDER BY works.id`,
    );
    for (const row of works.iterate()) yield attemptLine(row, attempts.all(Number(row["id"])));
  }

  async *workRecords(): AsyncIterable<WorkRecord> {
    using connection = await this.#file.connect();
    const db = connection.content;
    const files = db.prepare(FILES_OF_WORK);
    const works = db.prepare(`SELECT ${RECORD_COLUMNS} FROM works WHERE merged_into IS NULL ORDER BY id`);
    for (const row of works.iterate()) yield recordOfRow(row, files.all(Number(row["id"])));
  }

  async workRecord(id: number): Promise<WorkRecord> {
    using connection = await this.#file.connect();
    const db = connection.content;
    const row = db.prepare(`SELECT ${RECORD_COLUMNS} FROM works WHERE id = ?`).get(id) ?? {};
    return recordOfRow(row, db.prepare(FILES_OF_WORK).all(id));
  }

  async workHistory(key: string): Promise<WorkHistory | undefined> {
    using connection = await this.#file.connect();
    const db = connection.content;
    const work = db.prepare(`SELECT ${HISTORY_WORK} FROM works WHERE key = ?`).get(key);
    if (work === undefined) return undefined;
    const attempts = db.prepare(`SELECT ${HISTORY_ATTEMPTS} FROM attempts WHERE work = ? ORDER BY id`);
    return historyOfRows(work, attempts.all(Number(work["id"])));
  }

  async workers(): Promise<readonly ManifestWorker[]> {
    return [];
  }
}
