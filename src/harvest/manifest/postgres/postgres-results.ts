import type { DoneReason, Reason } from "../../reason.ts";
import { redactedUrl } from "../../redacted-url.ts";
import type { AttemptRecord } from "../manifest.ts";
import { type DownloadedFile, fileOfRow, type StoredFile } from "../manifest-files.ts";
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
    const { step, resolver, url, status = null, reason, message = null, bytes = 0, sha256 = null } = attempt;
    await this.#connection.apply(
      `changed AS (INSERT INTO attempts
         (work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ${NOW_MS}) RETURNING 1)`,
      "SELECT 1",
      [
        work,
        run,
        step,
        resolver,
        redactedUrl(url),
        status,
        reason,
        message,
        bytes,
        sha256,
        Math.round(attempt.elapsedMs),
      ],
    );
  }

  async finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): Promise<StoredFile> {
    const rows = await this.#worker.apply(work, ...finishStatement(run, reason, downloaded));
    const stored = rows === undefined ? await this.#files.file(downloaded.sha256) : fileOfRow(rows[0] ?? {});
    return stored ?? downloaded;
  }

  async saveProgress(work: number, progress: string | undefined): Promise<void> {
    await this.#connection.transaction(client =>
      this.#worker.change(client, "UPDATE works SET progress = $1 WHERE id = $2 AND taken_by = $3", [
        progress ?? null,
        work,
      ]),
    );
  }

  async complete(work: number, reason: DoneReason, message?: string): Promise<void> {
    await this.#connection.transaction(client =>
      this.#worker.change(
        client,
        `UPDATE works SET state = 'done', reason = $1, message = $2, ended_ms = ${NOW_MS}, taken_by = NULL, progress = NULL
         WHERE id = $3 AND taken_by = $4`,
        [reason, message ?? null, work],
      ),
    );
  }

  async fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    keepsProgress = false,
  ): Promise<void> {
    await this.#connection.transaction(client =>
      this.#worker.change(
        client,
        `UPDATE works SET state = 'failed', reason = $1, message = coalesce($2, message), sha256 = NULL,
           ended_ms = ${NOW_MS}, taken_by = NULL, progress = CASE WHEN $3 THEN progress ELSE $4 END
         WHERE id = $5 AND taken_by = $6`,
        [reason, message ?? null, keepsProgress, progress ?? null, work],
      ),
    );
  }
}
