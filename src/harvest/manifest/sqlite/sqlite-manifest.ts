import { resolve } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { DownloadError } from "../../../errors.ts";
import { identityOf, inTransaction } from "../../../stores/sqlite/database-file.ts";
import type { Time } from "../../../time/time.ts";
import { type DoneReason, isTemporary, type Reason } from "../../reason.ts";
import { redactedUrl } from "../../redacted-url.ts";
import type { AttemptRecord, FailedState, Manifest, ManifestLock, RunPhase } from "../manifest.ts";
import type { DownloadedFile, FinishedFile, PartialDownload } from "../manifest-files.ts";
import { ALL_INHERITED, type TakenWork } from "../manifest-queue.ts";
import { SqliteFiles } from "./sqlite-files.ts";
import {
  isManifestLocked,
  lockManifest,
  manifestError,
  type OpenManifestFile,
  openManifestFile,
  readManifestFile,
  withStatements,
} from "./sqlite-manifest-file.ts";
import { INHERITED_COUNT, SqliteQueue } from "./sqlite-queue.ts";
import { SqliteReports } from "./sqlite-reports.ts";
import { SqliteRobots } from "./sqlite-robots.ts";
import { SqliteManifestTables } from "./sqlite-tables.ts";
import { SqliteWorks } from "./sqlite-works.ts";

/** A manifest in one SQLite file. Each change is one transaction. One run at a time uses the file. */
export class SqliteManifest implements Manifest {
  readonly name: string;
  readonly db: DatabaseSync;
  readonly files: SqliteFiles;
  readonly works: SqliteWorks;
  readonly queue: SqliteQueue;
  readonly reports: SqliteReports;
  readonly robots: SqliteRobots;
  readonly tables: SqliteManifestTables;
  readonly #file: OpenManifestFile;
  readonly #time: Time;
  /** Absolute: the program may change its working directory later. */
  readonly #path: string;
  /** The inode of the open file: the path leads to another file, or to none, if a user deletes the manifest. */
  readonly #identity: bigint | undefined;
  readonly #isReader: boolean;
  readonly #attempt: StatementSync;
  readonly #done: StatementSync;
  readonly #addFile: StatementSync;
  readonly #removeReplaced: StatementSync;
  readonly #removeEarlier: StatementSync;
  readonly #mainFile: StatementSync;
  readonly #progress: StatementSync;
  readonly #complete: StatementSync;
  readonly #failed: StatementSync;

  /** Rejects with a ConfigError if the file is not a manifest; the file is not changed. */
  static async open(path: string, time: Time): Promise<SqliteManifest> {
    const file = await openManifestFile(path, time);
    return withStatements(path, file, () => new SqliteManifest(path, file, time, false));
  }

  /**
   * Like `open`, for a command that only reads: its user need not be able to write the file. Only `reports` and `tables`
   * see what is written later.
   */
  static async read(path: string, time: Time): Promise<SqliteManifest> {
    const file = await readManifestFile(path, time);
    return withStatements(path, file, () => new SqliteManifest(path, file, time, true));
  }

  private constructor(path: string, file: OpenManifestFile, time: Time, isReader: boolean) {
    const { db } = file;
    this.name = path;
    this.db = db;
    this.#file = file;
    this.#time = time;
    this.#path = resolve(path);
    this.#identity = identityOf(this.#path);
    this.#isReader = isReader;
    this.files = new SqliteFiles(db, this.name, time);
    this.works = new SqliteWorks(db, time, (work, { run, attempt }) => this.#addAttempt(run, work, attempt));
    this.queue = new SqliteQueue(db, time);
    this.reports = new SqliteReports(file);
    this.robots = new SqliteRobots(db, time);
    this.tables = new SqliteManifestTables(file);
    this.#attempt = db.prepare(
      `INSERT INTO attempts (work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#done = db.prepare(
      `UPDATE works SET state = 'done', reason = ?, message = NULL, sha256 = ?, url = ?, resolver = ?, licence = ?,
         version = ?, ended_ms = ?, taken_by = NULL, progress = NULL, inherited = NULL WHERE id = ?`,
    );
    this.#addFile = db.prepare(
      `INSERT INTO work_files (work, role, sha256, url, resolver) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (work, sha256) DO UPDATE SET role = excluded.role, url = excluded.url, resolver = excluded.resolver
         WHERE excluded.role = 'article'`,
    );
    // A file whose path the new one gets: it is displaced, or it was missing.
    this.#removeReplaced = db.prepare(
      `DELETE FROM work_files WHERE work = ? AND sha256 <> ?
         AND (SELECT path FROM files WHERE files.sha256 = work_files.sha256) = ?`,
    );
    // A supplement that has changed: the earlier one is no longer a file of the work.
    this.#removeEarlier = db.prepare(
      "DELETE FROM work_files WHERE work = ? AND url = ? AND sha256 <> ? AND role <> 'article'",
    );
    this.#mainFile = db.prepare(
      "UPDATE works SET sha256 = ?, url = ?, resolver = ?, licence = ?, version = ? WHERE id = ?",
    );
    this.#progress = db.prepare("UPDATE works SET queue = ?, progress = ? WHERE id = ?");
    this.#complete = db.prepare(
      `UPDATE works SET state = 'done', reason = ?, message = ?, ended_ms = ?, taken_by = NULL, progress = NULL,
         inherited = NULL WHERE id = ? AND ${INHERITED_COUNT} <= ?`,
    );
    this.#failed = db.prepare(
      `UPDATE works SET state = iif(sha256 IS NULL, 'failed', 'done'), reason = ?, message = ?, ended_ms = ?,
         taken_by = NULL, progress = iif(sha256 IS NULL, ?, NULL), inherited = iif(sha256 IS NULL AND ?, inherited, NULL)
       WHERE id = ? AND ${INHERITED_COUNT} <= ? RETURNING state`,
    );
  }

  tryLock(): Promise<ManifestLock | undefined> {
    return lockManifest(this.name);
  }

  isInUse(): Promise<boolean> {
    return isManifestLocked(this.name);
  }

  async beginRun(command: string, _settings?: string, flags?: string): Promise<number> {
    const insert = this.db.prepare("INSERT INTO runs (command, flags, started_ms, state) VALUES (?, ?, ?, 'running')");
    return inTransaction(this.db, "BEGIN IMMEDIATE", () => {
      // A killed run could not record its end or give back its works.
      this.db.exec("UPDATE runs SET state = 'interrupted' WHERE state = 'running'");
      this.db.exec("UPDATE works SET taken_by = NULL WHERE taken_by IS NOT NULL");
      return Number(insert.run(command, flags ?? null, this.#time.wallMs()).lastInsertRowid);
    });
  }

  async nextRun(): Promise<undefined> {
    return undefined;
  }

  async joinRun(): Promise<void> {
    throw new TypeError(`one process at a time uses the manifest ${this.name}`);
  }

  async endListing(): Promise<void> {
    // Only the process that lists works on the run.
  }

  async endRun(run: number, state: Exclude<RunPhase, "running">): Promise<void> {
    this.#checkFile();
    await this.rollbackList();
    this.db.prepare("UPDATE runs SET state = ?, ended_ms = ? WHERE id = ?").run(state, this.#time.wallMs(), run);
  }

  async beginList(): Promise<void> {
    this.db.exec("BEGIN IMMEDIATE");
  }

  async commitList(): Promise<void> {
    this.db.exec("COMMIT");
  }

  async rollbackList(): Promise<void> {
    if (this.db.isTransaction) this.db.exec("ROLLBACK");
  }

  async recordAttempt(run: number, work: number, attempt: AttemptRecord): Promise<void> {
    this.#addAttempt(run, work, attempt);
  }

  #addAttempt(run: number, work: number, attempt: AttemptRecord): void {
    const { step, resolver, url, status = null, reason, message = null, bytes = 0, sha256 = null } = attempt;
    const rest = [bytes, sha256, Math.round(attempt.elapsedMs), this.#time.wallMs()] as const;
    this.#attempt.run(work, run, step, resolver, redactedUrl(url), status, reason, message, ...rest);
  }

  async finish(
    run: number,
    work: number,
    reason: DoneReason,
    downloaded: DownloadedFile,
    attempt?: AttemptRecord,
  ): Promise<FinishedFile> {
    this.#checkFile();
    const parts = inTransaction(this.db, "BEGIN IMMEDIATE", () => {
      if (attempt !== undefined) this.#addAttempt(run, work, attempt);
      const { sha256, path, url, resolver, licence = null, version = null, role = "article" } = downloaded;
      const { ofSeveral, urlHash } = downloaded;
      // Before `addFile`, which gives a displaced file its new path.
      this.#removeReplaced.run(work, sha256, path);
      this.files.addFile(run, downloaded);
      this.#addFile.run(work, role, sha256, url, resolver);
      if (ofSeveral !== undefined) {
        this.#removeEarlier.run(work, url, sha256);
        if (ofSeveral === "main") this.#mainFile.run(sha256, url, resolver, licence, version, work);
        return this.files.removePart(urlHash, work);
      }
      this.#done.run(reason, sha256, url, resolver, licence, version, this.#time.wallMs(), work);
      return this.files.removePartsOf(work);
    });
    return { file: downloaded, parts };
  }

  async saveProgress(work: number, queue: string, progress: string): Promise<void> {
    this.#progress.run(queue, progress, work);
  }

  async complete(
    work: number,
    reason: DoneReason,
    message?: string,
    inherited = ALL_INHERITED,
  ): Promise<TakenWork | undefined> {
    this.#checkFile();
    return inTransaction(this.db, "BEGIN IMMEDIATE", () => {
      const { changes } = this.#complete.run(reason, message ?? null, this.#time.wallMs(), work, inherited);
      if (Number(changes) === 0) return this.queue.taken(work);
      this.files.removePartsOf(work);
      return undefined;
    });
  }

  async fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    inherited = ALL_INHERITED,
  ): Promise<FailedState | TakenWork> {
    this.#checkFile();
    const columns = [
      reason,
      message ?? null,
      this.#time.wallMs(),
      progress ?? null,
      isTemporary(reason) ? 1 : 0,
    ] as const;
    const row = this.#failed.get(...columns, work, inherited);
    if (row === undefined) return this.queue.taken(work);
    return row["state"] === "done" ? "done" : "failed";
  }

  async recover(recoverParts: (parts: readonly PartialDownload[]) => Promise<void>): Promise<void> {
    this.files.forgetEnded();
    await recoverParts(await this.files.parts());
  }

  shareLimits(): void {
    // Only one process works on a manifest file, so there is no other process to find dead.
  }

  watch(): void {
    // No other process changes the file while a run uses it.
  }

  stopWaiting(): void {
    // No operation waits for a server.
  }

  errorFrom(error: unknown): unknown {
    return manifestError(this.name, error, this.#isReader);
  }

  /** To be called before a result is recorded: in a deleted file it would be lost without an error. */
  #checkFile(): void {
    if (identityOf(this.#path) === this.#identity) return;
    throw new DownloadError(`the manifest ${this.name} was deleted or replaced while the run used it`);
  }

  async close(): Promise<void> {
    if (this.db.isOpen) this.#file.close();
  }
}
