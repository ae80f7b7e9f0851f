import type { SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import { type DoneReason, isTemporary, type Reason } from "../../reason.ts";
import type { AttemptRecord, FailedState } from "../manifest.ts";
import { type DownloadedFile, type FinishedFile, fileOfRow } from "../manifest-files.ts";
import type { TakenWork } from "../manifest-queue.ts";
import { ATTEMPT_COLUMNS, attemptValues } from "./attempt-values.ts";
import { finishStatement } from "./finish-statement.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresFiles } from "./postgres-files.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

/** Records the attempts and results of works that this worker has taken. */
export class PostgresResults {
  readonly #connection: PostgresConnection;
  readonly #worker: PostgresWorker;
  readonly #files: PostgresFiles;

  constructor(connection: PostgresConnection, worker: PostgresWorker, files: PostgresFiles) {
    this.#connection = connection;
    this.#worker = worker;
    this.#files = files;
  }

  async recordAttempt(run: number, work: number, attempt: AttemptRecord): Promise<void> {
    const parameters: SqlParameter[] = [];
    const values = attemptValues(run, attempt, (value, type) => `$${parameters.push(value) + 1}::${type}`);
    const sql = `INSERT INTO attempts (work, ${ATTEMPT_COLUMNS}) VALUES ($1, ${values})`;
    await this.#connection.apply(work, sql, parameters);
  }

  async finish(
    run: number,
    work: number,
    reason: DoneReason,
    downloaded: DownloadedFile,
    attempt: AttemptRecord | undefined,
  ): Promise<FinishedFile> {
    const rows = await this.#worker.apply(work, ...finishStatement(run, reason, downloaded, attempt));
    // The reply was lost. The partial files of this worker are deleted when it has ended.
    if (rows === undefined) return { file: (await this.#files.file(downloaded.sha256)) ?? downloaded, parts: [] };
    const [row = {}] = rows;
    return { file: fileOfRow(row), parts: row["parts"] as readonly string[] };
  }

  async saveProgress(work: number, queue: string, progress: string): Promise<void> {
    await this.#worker.changeTaken(work, "queue = $3, progress = $4", [queue, progress]);
  }

  async complete(
    work: number,
    reason: DoneReason,
    message?: string,
    inherited?: number,
  ): Promise<TakenWork | undefined> {
    const result = await this.#worker.release(
      work,
      `state = 'done', reason = $3, message = $4, ended_ms = ${NOW_MS}, progress = NULL, inherited = NULL`,
      [reason, message ?? null],
      inherited,
      ["gone AS (DELETE FROM parts WHERE work IN (SELECT id FROM released))"],
    );
    return typeof result === "string" ? undefined : result;
  }

  async fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    inherited?: number,
  ): Promise<FailedState | TakenWork> {
    const result = await this.#worker.release(
      work,
      `state = CASE WHEN sha256 IS NULL THEN 'failed' ELSE 'done' END, reason = $3, message = $4, ended_ms = ${NOW_MS},
         progress = CASE WHEN sha256 IS NULL THEN $5 END,
         inherited = CASE WHEN sha256 IS NULL AND $6::boolean THEN inherited END`,
      [reason, message ?? null, progress ?? null, isTemporary(reason)],
      inherited,
    );
    if (typeof result !== "string") return result;
    return result === "done" ? "done" : "failed";
  }
}
