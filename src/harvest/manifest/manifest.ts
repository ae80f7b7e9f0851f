import type { DatabaseSync, StatementSync } from "node:sqlite";
import { inTransaction } from "../../stores/sqlite/database-file.ts";
import type { Time } from "../../time/time.ts";
import type { DoneReason, Reason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { Work, WorkIds } from "../work.ts";
import { openManifestFile } from "./manifest-file.ts";
import { type DownloadedFile, ManifestFiles } from "./manifest-files.ts";

/** A work in the manifest. */
export interface ListedWork extends Work {
  /** Row id. */
  readonly id: number;
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

/** The works of a list, by what the run does with them. */
export interface ListedCounts {
  /** This run will resolve them. */
  readonly pending: number;
  /** Done in an earlier run, with the file present. */
  readonly present: number;
  /** Failed in an earlier run and not tried again. */
  readonly failed: number;
}

export type RunState = "running" | "ended" | "interrupted";

/**
 * The works, attempts and files of any number of runs, in one SQLite file. Each change is one transaction, so the file is
 * consistent whenever the process dies. Created by `openManifest`.
 */
export class Manifest {
  readonly db: DatabaseSync;
  readonly files: ManifestFiles;
  readonly #time: Time;
  readonly #add: StatementSync;
  readonly #known: StatementSync;
  readonly #reopen: StatementSync;
  readonly #pending: StatementSync;
  readonly #attempt: StatementSync;
  readonly #updateWork: StatementSync;
  readonly #done: StatementSync;
  readonly #addFile: StatementSync;
  readonly #failed: StatementSync;

  constructor(db: DatabaseSync, time: Time) {
    this.db = db;
    this.#time = time;
    this.files = new ManifestFiles(db, time);
    this.#add = db.prepare(
      `INSERT INTO works (key, ids, title, year, run, state, added_ms) VALUES (?, ?, ?, ?, ?, 'pending', ?)
       ON CONFLICT (key) DO NOTHING`,
    );
    this.#known = db.prepare("SELECT id, state, sha256, run FROM works WHERE key = ?");
    this.#reopen = db.prepare("UPDATE works SET run = ?, state = ?, ended_ms = ? WHERE id = ?");
    this.#pending = db.prepare(
      "SELECT id, key, ids, title, year FROM works WHERE run = ? AND state = 'pending' AND id > ? ORDER BY id LIMIT ?",
    );
    this.#attempt = db.prepare(
      `INSERT INTO attempts (work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#updateWork = db.prepare(
      "UPDATE works SET ids = ?, title = coalesce(?, title), year = coalesce(?, year) WHERE id = ?",
    );
    this.#done = db.prepare(
      `UPDATE works SET state = 'done', reason = ?, message = NULL, sha256 = ?, url = ?, resolver = ?, licence = ?,
         version = ?, ended_ms = ? WHERE id = ?`,
    );
    this.#addFile = db.prepare(
      `INSERT INTO work_files (work, role, sha256, url, resolver) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (work, sha256) DO UPDATE SET role = excluded.role, url = excluded.url, resolver = excluded.resolver`,
    );
    this.#failed = db.prepare(
      "UPDATE works SET state = 'failed', reason = ?, message = ?, sha256 = NULL, ended_ms = ? WHERE id = ?",
    );
  }

  /** @param command the command line, for `docstokg status` */
  beginRun(command: string): number {
    // A killed run could not record its end.
    this.db.exec("UPDATE runs SET state = 'interrupted' WHERE state = 'running'");
    const insert = this.db.prepare("INSERT INTO runs (command, started_ms, state) VALUES (?, ?, 'running')");
    return Number(insert.run(command, this.#time.wallMs()).lastInsertRowid);
  }

  endRun(run: number, state: Exclude<RunState, "running">): void {
    this.rollbackList();
    this.db.prepare("UPDATE runs SET state = ?, ended_ms = ? WHERE id = ?").run(state, this.#time.wallMs(), run);
  }

  /** Adds works to a run. Works that are done stay done if their file is present, unless `isRefresh` is set. */
  addWorks(
    run: number,
    works: readonly Work[],
    isPresent: (sha256: string) => boolean,
    isRefresh = false,
  ): ListedCounts {
    const counts = { pending: 0, present: 0, failed: 0 };
    const list = () => {
      for (const work of works) {
        const { key, ids, title = null, year = null } = work;
        const added = this.#add.run(key, JSON.stringify(ids), title, year, run, this.#time.wallMs());
        if (added.changes === 1) counts.pending += 1;
        else this.#addKnownWork(run, key, isPresent, isRefresh, counts);
      }
    };
    if (this.db.isTransaction) list();
    else inTransaction(this.db, "BEGIN IMMEDIATE", list);
    return counts;
  }

  /** Adds unfinished works to a run, and failed ones if `failed` is given (of one reason or all). Returns their number. */
  addUnfinished(run: number, failed: { readonly reason?: Reason | undefined } | undefined): number {
    const pending = this.db.prepare("UPDATE works SET run = ? WHERE state = 'pending'").run(run).changes;
    if (failed === undefined) return Number(pending);
    const reopenFailed = this.db.prepare(
      "UPDATE works SET run = ?, state = 'pending', ended_ms = NULL WHERE state = 'failed' AND (?2 IS NULL OR reason = ?2)",
    );
    return Number(pending) + Number(reopenFailed.run(run, failed.reason ?? null).changes);
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

  /** The next pending works of a run after `afterId`, in the order of the list. */
  pending(run: number, afterId: number, limit: number): readonly ListedWork[] {
    return this.#pending.all(run, afterId, limit).map(row => ({
      id: Number(row["id"]),
      key: String(row["key"]),
      ids: JSON.parse(String(row["ids"])) as WorkIds,
      title: row["title"] === null ? undefined : String(row["title"]),
      year: row["year"] === null ? undefined : Number(row["year"]),
    }));
  }

  recordAttempt(run: number, work: number, attempt: AttemptRecord): void {
    const { step, resolver, url, status = null, reason, message = null, bytes = 0, sha256 = null } = attempt;
    const rest = [bytes, sha256, Math.round(attempt.elapsedMs), this.#time.wallMs()] as const;
    this.#attempt.run(work, run, step, resolver, redactedUrl(url), status, reason, message, ...rest);
  }

  updateWork({ id, ids, title, year }: ListedWork): void {
    this.#updateWork.run(JSON.stringify(ids), title ?? null, year ?? null, id);
  }

  /** Records in one transaction that the work is done, its file, and the source of the file. */
  finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): void {
    inTransaction(this.db, "BEGIN IMMEDIATE", () => {
      const { sha256, url, resolver, licence = null, version = null } = downloaded;
      this.files.addFile(run, downloaded);
      const { displaced } = downloaded;
      if (displaced !== undefined)
        this.db.prepare("DELETE FROM work_files WHERE work = ? AND sha256 = ?").run(work, displaced.sha256);
      this.#addFile.run(work, downloaded.role ?? "article", sha256, url, resolver);
      this.files.deleteParts(work);
      this.#done.run(reason, sha256, url, resolver, licence, version, this.#time.wallMs(), work);
    });
  }

  fail(work: number, reason: Reason, message: string | undefined): void {
    this.#failed.run(reason, message ?? null, this.#time.wallMs(), work);
  }

  close(): void {
    if (this.db.isOpen) this.db.close();
  }

  #addKnownWork(
    run: number,
    key: string,
    isPresent: (sha256: string) => boolean,
    isRefresh: boolean,
    counts: { pending: number; present: number; failed: number },
  ): void {
    const row = this.#known.get(key);
    if (row === undefined) return;
    const { id, state, sha256 } = row;
    // The list names the work twice.
    if (Number(row["run"]) === run) return;
    const isDone = state === "done" && !isRefresh && isPresent(String(sha256));
    const newState = state === "failed" ? "failed" : isDone ? "done" : "pending";
    this.#reopen.run(run, newState, newState === "pending" ? null : this.#time.wallMs(), Number(id));
    counts[newState === "failed" ? "failed" : isDone ? "present" : "pending"] += 1;
  }
}

/** Rejects with a ConfigError if the file is not a manifest; the file is not changed. */
export async function openManifest(path: string, time: Time): Promise<Manifest> {
  return new Manifest(await openManifestFile(path, time), time);
}
