import type { DatabaseSync, StatementSync } from "node:sqlite";
import { inTransaction } from "../../stores/sqlite/database-file.ts";
import type { Time } from "../../time/time.ts";
import type { DoneReason, Reason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { Work, WorkIds } from "../work.ts";
import { openManifestFile } from "./manifest-file.ts";
import { type DownloadedFile, ManifestFiles } from "./manifest-files.ts";

/** A work as the manifest knows it. */
export interface ListedWork extends Work {
  /** Its number in this manifest. */
  readonly id: number;
}

/** One question, page or file that was asked for, and what came of it. */
export interface AttemptRecord {
  readonly step: "ask" | "robots" | "fetch";
  readonly resolver: string;
  /** As it was sent, but for what may be a secret: `shownUrl`. */
  readonly url: string;
  readonly status?: number | undefined;
  readonly reason: Reason;
  readonly message?: string | undefined;
  readonly bytes?: number | undefined;
  readonly sha256?: string | undefined;
  readonly elapsedMs: number;
}

/** What became of those who were asked for. */
export interface ListedCounts {
  /** To be done in this run. */
  readonly pending: number;
  /** Done before, their files in place. */
  readonly present: number;
  /** Failed before, and left alone. */
  readonly failed: number;
}

export type RunState = "running" | "ended" | "interrupted";

/**
 * What was wanted, what was tried and what came of it, over any number of runs. Each change is one transaction: whenever
 * the process dies, the file says how far it was. Made by `openManifest`.
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
    this.#failed = db.prepare(
      "UPDATE works SET state = 'failed', reason = ?, message = ?, sha256 = NULL, ended_ms = ? WHERE id = ?",
    );
  }

  /** @param command as it was given, for whoever reads the manifest later */
  beginRun(command: string): number {
    // Those who were killed could not say so.
    this.db.exec("UPDATE runs SET state = 'interrupted' WHERE state = 'running'");
    const insert = this.db.prepare("INSERT INTO runs (command, started_ms, state) VALUES (?, ?, 'running')");
    return Number(insert.run(command, this.#time.wallMs()).lastInsertRowid);
  }

  endRun(run: number, state: Exclude<RunState, "running">): void {
    this.rollbackList();
    this.db.prepare("UPDATE runs SET state = ?, ended_ms = ? WHERE id = ?").run(state, this.#time.wallMs(), run);
  }

  /** Lists works for a run. Those that are done stay done when their files are in place, unless `again`. */
  addWorks(run: number, works: readonly Work[], isPresent: (sha256: string) => boolean, again = false): ListedCounts {
    const tally = { pending: 0, present: 0, failed: 0 };
    const list = () => {
      for (const work of works) {
        const { key, ids, title = null, year = null } = work;
        const added = this.#add.run(key, JSON.stringify(ids), title, year, run, this.#time.wallMs());
        if (added.changes === 1) tally.pending += 1;
        else this.#addKnownWork(run, key, isPresent, again, tally);
      }
    };
    if (this.db.isTransaction) list();
    else inTransaction(this.db, "BEGIN IMMEDIATE", list);
    return tally;
  }

  /** Lists those for a run that are unfinished, and on demand those that failed. Answers how many. */
  addUnfinished(run: number, failed: { readonly reason?: Reason | undefined } | undefined): number {
    const pending = this.db.prepare("UPDATE works SET run = ? WHERE state = 'pending'").run(run).changes;
    if (failed === undefined) return Number(pending);
    const again = this.db.prepare(
      "UPDATE works SET run = ?, state = 'pending', ended_ms = NULL WHERE state = 'failed' AND (?2 IS NULL OR reason = ?2)",
    );
    return Number(pending) + Number(again.run(run, failed.reason ?? null).changes);
  }

  /** From here on the list is kept by `keepList` as a whole, or taken back by `forsakeList`; by the end of the run, too. */
  beginList(): void {
    this.db.exec("BEGIN IMMEDIATE");
  }

  commitList(): void {
    this.db.exec("COMMIT");
  }

  rollbackList(): void {
    if (this.db.isTransaction) this.db.exec("ROLLBACK");
  }

  /** The next of a run that wait to be done, in the order of the list. */
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

  /** The work is there: it, its file and where that came from, together or not at all. */
  finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): void {
    inTransaction(this.db, "BEGIN IMMEDIATE", () => {
      const { sha256, url, resolver, licence = null, version = null } = downloaded;
      this.files.addFile(run, downloaded);
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
    again: boolean,
    tally: { pending: number; present: number; failed: number },
  ): void {
    const row = this.#known.get(key);
    if (row === undefined) return;
    const { id, state, sha256 } = row;
    // Named twice in one list.
    if (Number(row["run"]) === run) return;
    const isDone = state === "done" && !again && isPresent(String(sha256));
    const now = state === "failed" ? "failed" : isDone ? "done" : "pending";
    this.#reopen.run(run, now, now === "pending" ? null : this.#time.wallMs(), Number(id));
    tally[now === "failed" ? "failed" : isDone ? "present" : "pending"] += 1;
  }
}

/** Rejects with a ConfigError when the file is no manifest of ours; it is left as it is. */
export async function openManifest(path: string, time: Time): Promise<Manifest> {
  return new Manifest(await openManifestFile(path, time), time);
}
