import type { DatabaseSync, StatementSync } from "node:sqlite";
import { inTransaction } from "../../stores/sqlite/database-file.ts";
import type { Time } from "../../time/time.ts";
import type { DoneReason, Reason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { MetadataSources, Work } from "../work.ts";
import { openManifestFile } from "./manifest-file.ts";
import { type DownloadedFile, ManifestFiles } from "./manifest-files.ts";
import { ManifestQueue } from "./manifest-queue.ts";
import { ManifestWorks } from "./manifest-works.ts";

/** A work in the manifest. */
export interface ListedWork extends Work {
  /** Row id. */
  readonly id: number;
  /** The resolver that each field of the metadata comes from. */
  readonly sources?: MetadataSources | undefined;
}

/** One request of a work, and its result. */
export interface AttemptRecord {
  readonly step: "ask" | "robots" | "fetch";
  readonly resolver: string;
  /** Stored without secrets: `redactedUrl`. */
  readonly url: string;
  readonly status?: number | undefined;
  readonly reason: Reason;
  readonly message?: string | undefined;
  readonly bytes?: number | undefined;
  readonly sha256?: string | undefined;
  readonly elapsedMs: number;
}

export type RunState = "running" | "ended" | "interrupted";

/**
 * The works, attempts and files of any number of runs, in one SQLite file. Each change is one transaction, so the file is
 * consistent whenever the process dies. Created by `openManifest`.
 */
export class Manifest {
  readonly db: DatabaseSync;
  readonly files: ManifestFiles;
  readonly works: ManifestWorks;
  readonly queue: ManifestQueue;
  readonly #time: Time;
  readonly #attempt: StatementSync;
  readonly #done: StatementSync;
  readonly #addFile: StatementSync;
  readonly #removeFile: StatementSync;
  readonly #failed: StatementSync;

  constructor(db: DatabaseSync, time: Time) {
    this.db = db;
    this.#time = time;
    this.files = new ManifestFiles(db, time);
    this.works = new ManifestWorks(db, time);
    this.queue = new ManifestQueue(db);
    this.#attempt = db.prepare(
      `INSERT INTO attempts (work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#done = db.prepare(
      `UPDATE works SET state = 'done', reason = ?, message = NULL, sha256 = ?, url = ?, resolver = ?, licence = ?,
         version = ?, ended_ms = ?, taken_by = NULL, progress = NULL WHERE id = ?`,
    );
    this.#addFile = db.prepare(
      `INSERT INTO work_files (work, role, sha256, url, resolver) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (work, sha256) DO UPDATE SET role = excluded.role, url = excluded.url, resolver = excluded.resolver`,
    );
    this.#removeFile = db.prepare("DELETE FROM work_files WHERE work = ? AND sha256 = ?");
    this.#failed = db.prepare(
      `UPDATE works SET state = 'failed', reason = ?, message = coalesce(?, message), sha256 = NULL, ended_ms = ?,
         taken_by = NULL, progress = CASE WHEN ? THEN progress ELSE ? END WHERE id = ?`,
    );
  }

  /** @param command the command line, for `docstokg status` */
  beginRun(command: string): number {
    // A killed run could not record its end, and has its works no longer in memory.
    this.db.exec("UPDATE runs SET state = 'interrupted' WHERE state = 'running'");
    this.db.exec("UPDATE works SET taken_by = NULL WHERE taken_by IS NOT NULL");
    const insert = this.db.prepare("INSERT INTO runs (command, started_ms, state) VALUES (?, ?, 'running')");
    return Number(insert.run(command, this.#time.wallMs()).lastInsertRowid);
  }

  endRun(run: number, state: Exclude<RunState, "running">): void {
    this.rollbackList();
    this.db.prepare("UPDATE runs SET state = ?, ended_ms = ? WHERE id = ?").run(state, this.#time.wallMs(), run);
  }

  /** Starts a transaction: the added works are kept by `commitList` or removed by `rollbackList` and `endRun`. */
  beginList(): void {
    this.db.exec("BEGIN IMMEDIATE");
  }

  commitList(): void {
    this.db.exec("COMMIT");
  }

  rollbackList(): void {
    if (this.db.isTransaction) this.db.exec("ROLLBACK");
  }

  recordAttempt(run: number, work: number, attempt: AttemptRecord): void {
    const { step, resolver, url, status = null, reason, message = null, bytes = 0, sha256 = null } = attempt;
    const rest = [bytes, sha256, Math.round(attempt.elapsedMs), this.#time.wallMs()] as const;
    this.#attempt.run(work, run, step, resolver, redactedUrl(url), status, reason, message, ...rest);
  }

  /** Records in one transaction that the work is done, its file, and the source of the file. */
  finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): void {
    inTransaction(this.db, "BEGIN IMMEDIATE", () => {
      const { sha256, url, resolver, licence = null, version = null, displaced, role = "article" } = downloaded;
      this.files.addFile(run, downloaded);
      if (displaced !== undefined) this.#removeFile.run(work, displaced.sha256);
      this.#addFile.run(work, role, sha256, url, resolver);
      this.files.deleteParts(work);
      this.#done.run(reason, sha256, url, resolver, licence, version, this.#time.wallMs(), work);
    });
  }

  /**
   * @param progress kept for `docstokg retry`, which then continues there. @default none
   * @param keepsProgress keeps what the manifest has: the work is not in memory
   */
  fail(work: number, reason: Reason, message: string | undefined, progress?: string, keepsProgress = false): void {
    const wallMs = this.#time.wallMs();
    this.#failed.run(reason, message ?? null, wallMs, keepsProgress ? 1 : 0, progress ?? null, work);
  }

  close(): void {
    if (this.db.isOpen) this.db.close();
  }
}

/** Rejects with a ConfigError if the file is not a manifest; the file is not changed. */
export async function openManifest(path: string, time: Time): Promise<Manifest> {
  return new Manifest(await openManifestFile(path, time), time);
}
