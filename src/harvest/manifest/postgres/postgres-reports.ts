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
import type { Row } from "../manifest-row.ts";
import type { ManifestWorker, WorkerStatus } from "../manifest-workers.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** Works are read in pages, so that memory stays bounded. */
const WORKS_PER_PAGE = 1000;
const ONLY = "($1::bigint IS NULL OR run = $1)";

/** Reads reports from the tables of a PostgreSQL manifest. */
export class PostgresReports implements ManifestReports {
  readonly #connection: PostgresConnection;

  constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  async report(run?: number): Promise<ManifestReport> {
    const only = [run ?? null];
    const read = (sql: string) => this.#connection.read(sql, only);
    const [counts, reasons, resolvers, files, runs] = await Promise.all([
      read(
        `SELECT CASE WHEN merged_into IS NULL THEN state ELSE 'merged' END AS state, count(*) AS works FROM works
         WHERE ${ONLY} GROUP BY 1`,
      ),
      read(
        `SELECT state, reason, count(*) AS works FROM works WHERE state <> 'pending' AND merged_into IS NULL AND ${ONLY}
         GROUP BY state, reason ORDER BY state, works DESC, reason`,
      ),
      read(
        `SELECT resolver, count(*) AS works FROM works WHERE state = 'done' AND merged_into IS NULL AND ${ONLY}
         GROUP BY resolver ORDER BY works DESC, resolver`,
      ),
      read(
        `SELECT count(*) AS count, coalesce(sum(bytes), 0)::bigint AS bytes FROM files
         WHERE sha256 IN (SELECT work_files.sha256 FROM work_files JOIN works ON works.id = work
           WHERE works.sha256 IS NOT NULL AND ${ONLY})`,
      ),
      this.#connection.read("SELECT id, command, state, started_ms, ended_ms FROM runs ORDER BY id DESC LIMIT 10"),
    ]);
    return reportOfRows({ counts, reasons, resolvers, files: files[0], runs });
  }

  async latestFlags(): Promise<string | undefined> {
    const [row] = await this.#connection.read(LATEST_FLAGS);
    return row && String(row["flags"]);
  }

  async storedFiles(): Promise<readonly StoredFileRow[]> {
    const rows = await this.#connection.read(
      `SELECT path, min(role) AS role, files.sha256, bytes, count(*) AS works FROM files JOIN work_files USING (sha256)
       JOIN works ON works.id = work WHERE state = 'done' GROUP BY files.sha256 ORDER BY path`,
    );
    return rows.map(storedFileOfRow);
  }

  async resolverCounts(): Promise<readonly ResolverCount[]> {
    return (await this.#connection.read(RESOLVER_COUNTS)).map(resolverCountOfRow);
  }

  async workloads(): Promise<readonly ResolverWorkload[]> {
    return (await this.#connection.read(WORKLOADS)).map(workloadOfRow);
  }

  async fileKinds(): Promise<readonly FileKindCount[]> {
    return (await this.#connection.read(FILE_KINDS)).map(fileKindOfRow);
  }

  async failedWorks(limit: number): Promise<readonly FailedWork[]> {
    const rows = await this.#connection.read(
      "SELECT key, reason, message FROM works WHERE state = 'failed' ORDER BY ended_ms DESC, id LIMIT $1",
      [limit],
    );
    return rows.map(failedWorkOfRow);
  }

  async *attemptLines(): AsyncIterable<string> {
    const works = this.#pages(
      `SELECT works.id, key, ids, title, year, run, state, reason, message, url, resolver, licence, version,
         works.added_ms, ended_ms, works.sha256, files.path, files.bytes, files.media_type, files.flag, metadata,
         merged_into
       FROM works LEFT JOIN files ON files.sha256 = works.sha256 WHERE works.id > $1 ORDER BY works.id LIMIT $2`,
    );
    for await (const page of works) {
      const attempts = await this.#byWork(
        `SELECT work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms FROM attempts
         WHERE work = ANY($1) ORDER BY work, id`,
        page,
      );
      for (const row of page) yield attemptLine(row, attempts.get(row["id"]) ?? []);
    }
  }

  async *workRecords(): AsyncIterable<WorkRecord> {
    const works = this.#pages(
      `SELECT ${RECORD_COLUMNS} FROM works WHERE merged_into IS NULL AND id > $1 ORDER BY id LIMIT $2`,
    );
    for await (const page of works) {
      const files = await this.#filesOf(page);
      for (const row of page) yield recordOfRow(row, files.get(row["id"]) ?? []);
    }
  }

  async workHistory(key: string): Promise<WorkHistory | undefined> {
    const [work] = await this.#connection.read(`SELECT ${HISTORY_WORK} FROM works WHERE key = $1`, [key]);
    if (work === undefined) return undefined;
    const attempts = `SELECT ${HISTORY_ATTEMPTS} FROM attempts WHERE work = $1 ORDER BY id`;
    return historyOfRows(work, await this.#connection.read(attempts, [Number(work["id"])]));
  }

  async workRecord(id: number): Promise<WorkRecord> {
    const rows = await this.#connection.read(`SELECT ${RECORD_COLUMNS} FROM works WHERE id = $1`, [id]);
    const files = await this.#filesOf(rows);
    return recordOfRow(rows[0] ?? {}, files.get(id) ?? []);
  }

  async workers(): Promise<readonly ManifestWorker[]> {
    const rows = await this.#connection.read(
      `SELECT id, run, name, is_listing, started_ms, ${NOW_MS} - started_ms AS elapsed_ms, status,
         lease_until_ms >= ${NOW_MS} AS is_alive,
         (SELECT count(*) FROM works WHERE taken_by = workers.id AND taken_by IS NOT NULL) AS taken
       FROM workers ORDER BY id`,
    );
    return rows.map(workerOfRow);
  }

  #filesOf(works: readonly Row[]): Promise<ReadonlyMap<unknown, readonly Row[]>> {
    return this.#byWork(
      `SELECT work, path, role, sha256, bytes, media_type, flag FROM work_files JOIN files USING (sha256)
       WHERE work = ANY($1) ORDER BY work, role, path`,
      works,
    );
  }

  /** The rows of each work, without their column `work`. */
  async #byWork(sql: string, works: readonly Row[]): Promise<ReadonlyMap<unknown, readonly Row[]>> {
    const byWork = new Map<unknown, Row[]>();
    for (const { work, ...row } of await this.#connection.read(sql, [works.map(({ id }) => Number(id))])) {
      const rows = byWork.get(work);
      if (rows === undefined) byWork.set(work, [row]);
      else rows.push(row);
    }
    return byWork;
  }

  /** @param sql its parameters are the id of the last row and the number of rows */
  async *#pages(sql: string): AsyncIterable<readonly Row[]> {
    for (let last = 0; ; ) {
      const page = await this.#connection.read(sql, [last, WORKS_PER_PAGE]);
      const end = page.at(-1);
      if (end === undefined) return;
      yield page;
      last = Number(end["id"]);
    }
  }
}

function workerOfRow(row: Row): ManifestWorker {
  const { done = 0, failed = 0, bytes = 0, inFlight = 0 } = JSON.parse(String(row["status"])) as Partial<WorkerStatus>;
  return {
    ...{ id: Number(row["id"]), run: Number(row["run"]), name: String(row["name"]) },
    ...{ startedMs: Number(row["started_ms"]), elapsedMs: Number(row["elapsed_ms"]), taken: Number(row["taken"]) },
    ...{ isListing: row["is_listing"] === true, isAlive: row["is_alive"] === true },
    ...{ done, failed, bytes, inFlight },
  };
}
