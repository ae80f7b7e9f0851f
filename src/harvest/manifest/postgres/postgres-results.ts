import type { DoneReason, Reason } from "../../reason.ts";
import { redactedUrl } from "../../redacted-url.ts";
import type { AttemptRecord } from "../manifest.ts";
import type { DownloadedFile, StoredFile } from "../manifest-files.ts";
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
    await this.#connection.write(
      `INSERT INTO attempts (work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ${NOW_MS})`,
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

  finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): Promise<StoredFile> {
    const { sha256, url, resolver, licence = null, version = null, displaced, role = "article" } = downloaded;
    const { ofSeveral, urlHash } = downloaded;
    return this.#connection.transaction(async client => {
      await this.#worker.check(client, work);
      const stored = await this.#files.addFile(client, run, downloaded);
      if (displaced !== undefined)
        await client.query("DELETE FROM work_files WHERE work = $1 AND sha256 = $2", [work, displaced.sha256]);
      await client.query(
        `INSERT INTO work_files (work, role, sha256, url, resolver) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (work, sha256) DO UPDATE SET role = excluded.role, url = excluded.url, resolver = excluded.resolver
         WHERE excluded.role = 'article'`,
        [work, role, sha256, url, resolver],
      );
      if (ofSeveral !== undefined) {
        // A supplement that has changed: the earlier one is no longer a file of the work.
        await client.query(
          "DELETE FROM work_files WHERE work = $1 AND url = $2 AND sha256 <> $3 AND role <> 'article'",
          [work, url, sha256],
        );
        await client.query("DELETE FROM parts WHERE work = $1 AND place = $2", [work, urlHash]);
        if (ofSeveral === "main")
          await client.query(
            "UPDATE works SET sha256 = $1, url = $2, resolver = $3, licence = $4, version = $5 WHERE id = $6",
            [sha256, url, resolver, licence, version, work],
          );
        return stored;
      }
      await client.query("DELETE FROM parts WHERE work = $1", [work]);
      await client.query(
        `UPDATE works SET state = 'done', reason = $1, message = NULL, sha256 = $2, url = $3, resolver = $4, licence = $5,
           version = $6, ended_ms = ${NOW_MS}, taken_by = NULL, progress = NULL WHERE id = $7`,
        [reason, sha256, url, resolver, licence, version, work],
      );
      return stored;
    });
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
