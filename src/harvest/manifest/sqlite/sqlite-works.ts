import type { DatabaseSync, StatementSync } from "node:sqlite";
import { inTransaction } from "../../../stores/sqlite/database-file.ts";
import type { Time } from "../../../time/time.ts";
import type { Reason } from "../../reason.ts";
import type { Work } from "../../work.ts";
import type { AttemptOfRun } from "../attempt-record.ts";
import { fileOfRow } from "../manifest-files.ts";
import type { Row } from "../manifest-row.ts";
import {
  type AddedWorks,
  type AddOptions,
  idNames,
  type ListedCounts,
  type ListedWork,
  listedFacts,
  type ManifestWorks,
  type MergeOptions,
  type MergeResult,
  mergeTarget,
  storedIds,
} from "../manifest-works.ts";
import { type InheritingColumns, MERGE_COLUMNS, mergeOf, relistedColumns } from "../work-merge.ts";

/** What a run does with a work of its list. */
type ListedState =
  | { readonly state: "pending"; readonly queue: string }
  | { readonly state: Exclude<keyof ListedCounts, "pending">; readonly id: number };

interface FoundWork {
  readonly row: Row;
  /** The key or identifier by which the work was found. It is in the manifest already. */
  readonly foundBy: string;
}

/** The tables `works` and `work_ids`. */
export class SqliteWorks implements ManifestWorks {
  readonly #db: DatabaseSync;
  readonly #time: Time;
  readonly #addAttempt: (work: number, request: AttemptOfRun) => void;
  readonly #insert: StatementSync;
  readonly #byKey: StatementSync;
  readonly #byRow: StatementSync;
  readonly #byId: StatementSync;
  readonly #addId: StatementSync;
  readonly #moveIds: StatementSync;
  readonly #reopen: StatementSync;
  readonly #keep: StatementSync;
  readonly #update: StatementSync;
  readonly #merge: StatementSync;
  readonly #inherit: StatementSync;
  readonly #wake: StatementSync;
  readonly #removeFiles: StatementSync;
  readonly #moveFiles: StatementSync;
  readonly #moveMainFile: StatementSync;

  constructor(db: DatabaseSync, time: Time, addAttempt: (work: number, request: AttemptOfRun) => void) {
    this.#db = db;
    this.#time = time;
    this.#addAttempt = addAttempt;
    this.#insert = db.prepare(
      `INSERT INTO works (key, ids, title, year, metadata, run, state, queue, added_ms)
       VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?) ON CONFLICT (key) DO NOTHING`,
    );
    const known = `SELECT ${MERGE_COLUMNS} FROM works LEFT JOIN files ON files.sha256 = works.sha256`;
    this.#byKey = db.prepare(`${known} WHERE key = ?`);
    this.#byRow = db.prepare(`${known} WHERE works.id = ?`);
    this.#byId = db.prepare(`${known} JOIN work_ids ON works.id = work WHERE work_ids.id = ?`);
    this.#addId = db.prepare("INSERT INTO work_ids (id, work) VALUES (?, ?) ON CONFLICT (id) DO NOTHING");
    this.#moveIds = db.prepare("UPDATE work_ids SET work = ? WHERE work = ?");
    // Works that were merged in a circle are resolved again: see `mergeTarget`.
    this.#reopen = db.prepare(
      `UPDATE works SET run = ?, state = 'pending', queue = ?, not_before_ms = 0, taken_by = NULL, ended_ms = NULL,
         merged_into = NULL, sha256 = CASE WHEN ? THEN sha256 END WHERE id = ?`,
    );
    this.#keep = db.prepare("UPDATE works SET run = ?, ended_ms = ? WHERE id = ?");
    // A patch, because another work may have been merged into this one meanwhile. Known identifiers are not replaced.
    this.#update = db.prepare(
      `UPDATE works SET ids = json_patch(?, ids), title = coalesce(?, title), year = coalesce(?, year),
         metadata = json_patch(coalesce(metadata, '{}'), ?) WHERE id = ?`,
    );
    this.#merge = db.prepare(
      `UPDATE works SET state = 'done', reason = 'merged', message = ?, merged_into = ?, sha256 = NULL, progress = NULL,
         inherited = NULL, taken_by = NULL, ended_ms = ? WHERE id = ?`,
    );
    this.#inherit = db.prepare(
      `UPDATE works SET ids = ?, title = coalesce(?, title), year = coalesce(?, year), metadata = ?, inherited = ?
       WHERE id = ?`,
    );
    this.#wake = db.prepare("UPDATE works SET queue = '', not_before_ms = 0 WHERE id = ? AND taken_by IS NULL");
    this.#moveFiles = db.prepare("UPDATE OR IGNORE work_files SET work = ? WHERE work = ? AND sha256 IS NOT ?");
    this.#removeFiles = db.prepare("DELETE FROM work_files WHERE work = ?");
    this.#moveMainFile = db.prepare(
      `UPDATE works SET (sha256, url, resolver, licence, version) =
         (SELECT sha256, url, resolver, licence, version FROM works WHERE id = ?2) WHERE id = ?1 AND sha256 IS NULL`,
    );
  }

  async add(run: number, works: readonly Work[], options: AddOptions): Promise<AddedWorks> {
    const queues = new Map<string, number>();
    const failedIds: number[] = [];
    const counts = { pending: 0, present: 0, failed: 0, failedIds, queues };
    const list = () => {
      for (const work of works) {
        const listed = this.#add(run, work, options);
        if (listed === undefined) continue;
        counts[listed.state] += 1;
        if (listed.state === "pending") queues.set(listed.queue, (queues.get(listed.queue) ?? 0) + 1);
        if (listed.state === "failed") failedIds.push(listed.id);
      }
    };
    this.#inTransaction(list);
    return counts;
  }

  async addUnfinished(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): Promise<number> {
    const unfinished = this.#db.prepare("UPDATE works SET run = ?, not_before_ms = 0 WHERE state = 'pending'");
    return this.#inTransaction(() => Number(unfinished.run(run).changes) + this.#addFailed(run, reasons, isContinued));
  }

  async addFailed(run: number, reason: Reason): Promise<number> {
    return this.#addFailed(run, [reason], false);
  }

  /** In the transaction of the list if there is one, else in its own. */
  #inTransaction<Value>(change: () => Value): Value {
    return this.#db.isTransaction ? change() : inTransaction(this.#db, "BEGIN IMMEDIATE", change);
  }

  #addFailed(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): number {
    const wanted = reasons === "all" ? "" : `AND reason IN (${reasons.map(() => "?").join(", ")})`;
    const { changes } = this.#db
      .prepare(
        `UPDATE works SET run = ?, state = 'pending', not_before_ms = 0,
           ${isContinued ? "" : "progress = NULL, inherited = NULL,"} ended_ms = NULL WHERE state = 'failed' ${wanted}`,
      )
      .run(run, ...(reasons === "all" ? [] : reasons));
    return Number(changes);
  }

  async reopen(sha256s: readonly string[]): Promise<number> {
    const damaged = "SELECT value FROM json_each(?)";
    // The source is forgotten too: a conditional request would say that the file has not changed.
    const forget = this.#db.prepare(`DELETE FROM sources WHERE sha256 IN (${damaged})`);
    const reopen = this.#db.prepare(
      `UPDATE works SET state = 'pending', queue = '', not_before_ms = 0, ended_ms = NULL,
         sha256 = CASE WHEN sha256 NOT IN (${damaged}) THEN sha256 END
       WHERE state = 'done' AND merged_into IS NULL AND id IN (SELECT work FROM work_files WHERE sha256 IN (${damaged}))`,
    );
    return inTransaction(this.#db, "BEGIN IMMEDIATE", () => {
      forget.run(JSON.stringify(sha256s));
      return Number(reopen.run(JSON.stringify(sha256s), JSON.stringify(sha256s)).changes);
    });
  }

  async update(work: ListedWork, request?: AttemptOfRun): Promise<number | undefined> {
    return inTransaction(this.#db, "BEGIN IMMEDIATE", () => {
      if (request !== undefined) this.#addAttempt(work.id, request);
      return this.#updateWork(work);
    });
  }

  #updateWork({ id, ids, metadata = {}, sources = {} }: ListedWork): number | undefined {
    const { title = null, year = null } = metadata;
    this.#update.run(storedIds(ids), title, year, JSON.stringify({ ...metadata, sources }), id);
    for (const name of idNames(ids)) {
      const owner = this.#ownerOf(name);
      if (owner === undefined) this.#addId.run(name, id);
      else if (Number(owner["id"]) !== id) return Number(owner["id"]);
    }
    return undefined;
  }

  async merge(work: ListedWork, otherId: number, options: MergeOptions): Promise<MergeResult> {
    return inTransaction(this.#db, "BEGIN IMMEDIATE", () => {
      const own = this.#byRow.get(work.id);
      const other = this.#mergeTargetOf(this.#byRow.get(otherId));
      // The other work was merged meanwhile: its identifiers now belong to the work that it was merged into.
      if (own === undefined || other === undefined || Number(other["id"]) !== otherId) return "outdated";
      const { result, stays, merged, columns, missing } = mergeOf(own, other, work, options);
      this.#moveIds.run(stays.id, merged);
      this.#setColumns(stays.id, columns);
      // If the work waits in the manifest, it is taken at once, because it has got further steps.
      this.#wake.run(stays.id);
      this.#moveFiles.run(stays.id, merged, missing);
      this.#removeFiles.run(merged);
      if (missing === null) this.#moveMainFile.run(stays.id, merged);
      this.#merge.run(`the same work as ${stays.key}`, stays.id, this.#time.wallMs(), merged);
      return result;
    });
  }

  #setColumns(id: number, { ids, title, year, metadata, inherited }: InheritingColumns): void {
    this.#inherit.run(ids, title, year, metadata, inherited, id);
  }

  async stateOf(work: Work): Promise<string | undefined> {
    const state = this.#find(work)?.row["state"];
    return state === undefined ? undefined : String(state);
  }

  #add(run: number, work: Work, options: AddOptions): ListedState | undefined {
    const known = this.#find(work);
    return known === undefined ? this.#addNew(run, work, options) : this.#addKnown(run, work, known, options);
  }

  #addNew(run: number, work: Work, { queueOf }: AddOptions): ListedState {
    const queue = queueOf?.(work) ?? "";
    const { ids, title, year, metadata } = listedFacts(work);
    const added = this.#insert.run(work.key, ids, title, year, metadata, run, queue, this.#time.wallMs());
    for (const name of idNames(work.ids)) this.#addId.run(name, Number(added.lastInsertRowid));
    return { state: "pending", queue };
  }

  #addKnown(run: number, work: Work, { row, foundBy }: FoundWork, options: AddOptions): ListedState | undefined {
    const id = Number(row["id"]);
    for (const name of idNames(work.ids)) if (name !== foundBy) this.#addId.run(name, id);
    const columns = relistedColumns(row, work);
    if (columns !== undefined) this.#setColumns(id, columns);
    // The list names the work twice.
    if (Number(row["run"]) === run) return undefined;
    const { state, sha256 } = row;
    const hasFile = sha256 !== null && options.isPresent(fileOfRow(row));
    const staysFailed = state === "failed" && options.isRetry !== true;
    if (staysFailed || (state === "done" && options.isRefresh !== true && hasFile)) {
      this.#keep.run(run, this.#time.wallMs(), id);
      return { state: staysFailed ? "failed" : "present", id };
    }
    const queue = options.queueOf?.(work) ?? "";
    // A file that is missing is no file of the work: if the work fails, it has none.
    this.#reopen.run(run, queue, hasFile ? 1 : 0, id);
    return { state: "pending", queue };
  }

  #find({ key, ids }: Work): FoundWork | undefined {
    const row = this.#mergeTargetOf(this.#byKey.get(key));
    if (row !== undefined) return { row, foundBy: key };
    for (const name of idNames(ids)) {
      const owner = this.#ownerOf(name);
      if (owner !== undefined) return { row: owner, foundBy: name };
    }
    return undefined;
  }

  /** The work that has an identifier. */
  #ownerOf(name: string): Row | undefined {
    return this.#mergeTargetOf(this.#byId.get(name));
  }

  /** The work that this one was merged into; the same row if it was not merged. */
  #mergeTargetOf(row: Row | undefined): Row | undefined {
    if (row === undefined || row["merged_into"] === null) return row;
    const target = mergeTarget(row["id"], id => this.#byRow.get(Number(id))?.["merged_into"]);
    return this.#byRow.get(Number(target));
  }
}
