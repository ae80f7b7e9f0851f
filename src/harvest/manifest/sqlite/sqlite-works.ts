import type { DatabaseSync, StatementSync } from "node:sqlite";
import { inTransaction } from "../../../stores/sqlite/database-file.ts";
import type { Time } from "../../../time/time.ts";
import type { Reason } from "../../reason.ts";
import type { Work, WorkIds } from "../../work.ts";
import { fileOfRow } from "../manifest-files.ts";
import type { Row } from "../manifest-row.ts";
import {
  type AddedWorks,
  type AddOptions,
  idNames,
  type ListedCounts,
  type ListedWork,
  listedMetadata,
  type ManifestWorks,
  storedIds,
} from "../manifest-works.ts";

/** The tables `works` and `work_ids`. */
export class SqliteWorks implements ManifestWorks {
  readonly #db: DatabaseSync;
  readonly #time: Time;
  readonly #insert: StatementSync;
  readonly #byKey: StatementSync;
  readonly #byId: StatementSync;
  readonly #addId: StatementSync;
  readonly #moveIds: StatementSync;
  readonly #reopen: StatementSync;
  readonly #update: StatementSync;
  readonly #merge: StatementSync;
  readonly #file: StatementSync;

  constructor(db: DatabaseSync, time: Time) {
    this.#db = db;
    this.#time = time;
    this.#insert = db.prepare(
      `INSERT INTO works (key, ids, title, year, metadata, run, state, queue, added_ms)
       VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?) ON CONFLICT (key) DO NOTHING`,
    );
    const columns = "works.id, state, sha256, run, queue, merged_into";
    this.#byKey = db.prepare(`SELECT ${columns} FROM works WHERE key = ?`);
    this.#byId = db.prepare(`SELECT ${columns} FROM work_ids JOIN works ON works.id = work WHERE work_ids.id = ?`);
    this.#addId = db.prepare("INSERT INTO work_ids (id, work) VALUES (?, ?) ON CONFLICT (id) DO NOTHING");
    this.#moveIds = db.prepare("UPDATE work_ids SET work = ? WHERE work = ?");
    this.#reopen = db.prepare(
      "UPDATE works SET run = ?, state = ?, queue = ?, not_before_ms = 0, taken_by = NULL, ended_ms = ? WHERE id = ?",
    );
    // Patched, because another work may have been merged into this one meanwhile.
    this.#update = db.prepare(
      `UPDATE works SET ids = json_patch(ids, ?), title = coalesce(?, title), year = coalesce(?, year),
         metadata = json_patch(coalesce(metadata, '{}'), ?) WHERE id = ?`,
    );
    this.#merge = db.prepare(
      `UPDATE works SET state = 'done', reason = 'merged', message = ?, merged_into = ?, progress = NULL, taken_by = NULL,
         ended_ms = ? WHERE id = ?`,
    );
    this.#file = db.prepare("SELECT sha256, path, bytes, media_type, flag FROM files WHERE sha256 = ?");
  }

  async add(run: number, works: readonly Work[], options: AddOptions): Promise<AddedWorks> {
    const queues = new Map<string, number>();
    const counts = { pending: 0, present: 0, failed: 0, queues };
    const list = () => {
      for (const work of works) {
        const queue = options.queueOf?.(work) ?? "";
        const state = this.#add(run, work, queue, options);
        if (state === undefined) continue;
        counts[state] += 1;
        if (state === "pending") queues.set(queue, (queues.get(queue) ?? 0) + 1);
      }
    };
    if (this.#db.isTransaction) list();
    else inTransaction(this.#db, "BEGIN IMMEDIATE", list);
    return counts;
  }

  async addUnfinished(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): Promise<number> {
    const pending = this.#db.prepare("UPDATE works SET run = ?, not_before_ms = 0 WHERE state = 'pending'").run(run);
    return Number(pending.changes) + this.#addFailed(run, reasons, isContinued);
  }

  async addFailed(run: number, reason: Reason): Promise<number> {
    return this.#addFailed(run, [reason], false);
  }

  #addFailed(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): number {
    const wanted = reasons === "all" ? "" : `AND reason IN (${reasons.map(() => "?").join(", ")})`;
    const { changes } = this.#db
      .prepare(
        `UPDATE works SET run = ?, state = 'pending', not_before_ms = 0, ended_ms = NULL,
           progress = ${isContinued ? "progress" : "NULL"} WHERE state = 'failed' ${wanted}`,
      )
      .run(run, ...(reasons === "all" ? [] : reasons));
    return Number(changes);
  }

  async reopen(sha256s: readonly string[]): Promise<number> {
    // The source is forgotten too: a conditional request would say that the file has not changed.
    const forget = this.#db.prepare("DELETE FROM sources WHERE sha256 = ?");
    const reopen = this.#db.prepare(
      `UPDATE works SET state = 'pending', queue = '', not_before_ms = 0, ended_ms = NULL
       WHERE state = 'done' AND id IN (SELECT work FROM work_files WHERE sha256 = ?)`,
    );
    return inTransaction(this.#db, "BEGIN IMMEDIATE", () =>
      sha256s.reduce((works, sha256) => {
        forget.run(sha256);
        return works + Number(reopen.run(sha256).changes);
      }, 0),
    );
  }

  async update({ id, ids, metadata = {}, sources = {} }: ListedWork): Promise<number | undefined> {
    const { title = null, year = null } = metadata;
    this.#update.run(storedIds(ids), title, year, JSON.stringify({ ...metadata, sources }), id);
    for (const name of idNames(ids)) {
      const owner = this.#byId.get(name);
      if (owner === undefined) this.#addId.run(name, id);
      else if (Number(owner["id"]) !== id) return Number(owner["id"]);
    }
    return undefined;
  }

  async merge(work: ListedWork, into: number): Promise<boolean> {
    inTransaction(this.#db, "BEGIN IMMEDIATE", () => {
      this.#moveIds.run(into, work.id);
      this.#update.run(storedIds(work.ids), null, null, "{}", into);
      const key = this.#db.prepare("SELECT key FROM works WHERE id = ?").get(into)?.["key"];
      this.#merge.run(`the same work as ${key}`, into, this.#time.wallMs(), work.id);
    });
    return true;
  }

  async stateOf(work: Work): Promise<string | undefined> {
    const state = this.#known(work)?.["state"];
    return state === undefined ? undefined : String(state);
  }

  /** What the run does with the work; undefined if the list has named it before. */
  #add(run: number, work: Work, queue: string, options: AddOptions): keyof ListedCounts | undefined {
    const { key, ids, metadata } = work;
    const known = this.#known(work);
    if (known !== undefined) return this.#addKnown(run, known, queue, options, ids);
    const { title = null, year = null } = metadata ?? {};
    const json = listedMetadata(work);
    const added = this.#insert.run(key, storedIds(ids), title, year, json, run, queue, this.#time.wallMs());
    for (const name of idNames(ids)) this.#addId.run(name, Number(added.lastInsertRowid));
    return "pending";
  }

  #isPresent(sha256: unknown, { isPresent }: AddOptions): boolean {
    const file = this.#file.get(String(sha256));
    return file !== undefined && isPresent(fileOfRow(file));
  }

  #known({ key, ids }: Work): Row | undefined {
    const found = this.#byKey.get(key);
    if (found !== undefined) {
      const into = found["merged_into"];
      return into === null ? found : this.#db.prepare("SELECT * FROM works WHERE id = ?").get(Number(into));
    }
    for (const name of idNames(ids)) {
      const owner = this.#byId.get(name);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }

  #addKnown(run: number, row: Row, queue: string, options: AddOptions, ids: WorkIds): keyof ListedCounts | undefined {
    const id = Number(row["id"]);
    for (const name of idNames(ids)) this.#addId.run(name, id);
    // The list names the work twice.
    if (Number(row["run"]) === run) return undefined;
    const { state, sha256 } = row;
    const isDone = state === "done" && options.isRefresh !== true && this.#isPresent(sha256, options);
    const next = state === "failed" ? "failed" : isDone ? "done" : "pending";
    this.#reopen.run(run, next, queue, next === "pending" ? null : this.#time.wallMs(), id);
    return next === "done" ? "present" : next;
  }
}
