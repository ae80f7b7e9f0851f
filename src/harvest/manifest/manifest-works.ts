import type { DatabaseSync, StatementSync } from "node:sqlite";
import { inTransaction } from "../../stores/sqlite/database-file.ts";
import type { Time } from "../../time/time.ts";
import type { Reason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { MetadataSources, Work, WorkIds, WorkMetadata } from "../work.ts";
import type { ListedWork } from "./manifest.ts";

/** The works of a list, by what the run does with them. */
export interface ListedCounts {
  /** This run will resolve them. */
  readonly pending: number;
  /** Done in an earlier run, with the file present. */
  readonly present: number;
  /** Failed in an earlier run and not tried again. */
  readonly failed: number;
}

export interface AddedWorks extends ListedCounts {
  /** Pending works by the queue of their next step. */
  readonly queues: ReadonlyMap<string, number>;
}

export interface AddOptions {
  /** Whether the file of a done work is still there. */
  readonly isPresent: (sha256: string) => boolean;
  /** Works that are done are pending again. @default false */
  readonly isRefresh?: boolean | undefined;
  /** The queue of the first step of a work. @default one queue for all works */
  readonly queueOf?: ((work: Work) => string) | undefined;
}

/** The tables `works` and `work_ids` of the manifest: which works there are, under which identifiers. */
export class ManifestWorks {
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
  }

  /** Adds works to a run. Works that are done stay done if their file is present. */
  add(run: number, works: readonly Work[], options: AddOptions): AddedWorks {
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

  /**
   * Adds unfinished works to a run, and failed works: those of a reason, or all. Returns their number.
   * @param isContinued whether failed works continue where they stopped
   */
  addUnfinished(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): number {
    const wanted = reasons === "all" ? "" : `AND reason IN (${reasons.map(() => "?").join(", ")})`;
    const pending = this.#db.prepare("UPDATE works SET run = ?, not_before_ms = 0 WHERE state = 'pending'").run(run);
    const failed = this.#db
      .prepare(
        `UPDATE works SET run = ?, state = 'pending', not_before_ms = 0, ended_ms = NULL,
           progress = ${isContinued ? "progress" : "NULL"} WHERE state = 'failed' ${wanted}`,
      )
      .run(run, ...(reasons === "all" ? [] : reasons));
    return Number(pending.changes) + Number(failed.changes);
  }

  /** Makes the works of files pending again, because the files are missing or damaged. Returns their number. */
  reopen(sha256s: readonly string[]): number {
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

  /** Stores what resolvers have added. Returns the id of another work that has one of the identifiers. */
  update({ id, ids, metadata = {}, sources = {} }: ListedWork): number | undefined {
    const { title = null, year = null } = metadata;
    this.#update.run(JSON.stringify(storedIds(ids)), title, year, JSON.stringify({ ...metadata, sources }), id);
    for (const name of idNames(ids)) {
      const owner = this.#byId.get(name);
      if (owner === undefined) this.#addId.run(name, id);
      else if (Number(owner["id"]) !== id) return Number(owner["id"]);
    }
    return undefined;
  }

  /** One work stands for both: the other one keeps the identifiers of this one. */
  merge(work: ListedWork, into: number): void {
    inTransaction(this.#db, "BEGIN IMMEDIATE", () => {
      this.#moveIds.run(into, work.id);
      this.#update.run(JSON.stringify(storedIds(work.ids)), null, null, "{}", into);
      const key = this.#db.prepare("SELECT key FROM works WHERE id = ?").get(into)?.["key"];
      this.#merge.run(`the same work as ${key}`, into, this.#time.wallMs(), work.id);
    });
  }

  /** `done`, `failed`, `pending`, or undefined if the manifest does not have the work. */
  stateOf(work: Work): string | undefined {
    const state = this.#known(work)?.["state"];
    return state === undefined ? undefined : String(state);
  }

  /** What the run does with the work; undefined if the list has named it before. */
  #add(run: number, work: Work, queue: string, options: AddOptions): keyof ListedCounts | undefined {
    const { key, ids, metadata } = work;
    const known = this.#known(work);
    if (known !== undefined) return this.#addKnown(run, known, queue, options, ids);
    const { title = null, year = null } = metadata ?? {};
    const sources = Object.fromEntries(Object.keys(metadata ?? {}).map(field => [field, "list"]));
    const json = metadata === undefined ? null : JSON.stringify({ ...metadata, sources });
    const stored = JSON.stringify(storedIds(ids));
    const added = this.#insert.run(key, stored, title, year, json, run, queue, this.#time.wallMs());
    for (const name of idNames(ids)) this.#addId.run(name, Number(added.lastInsertRowid));
    return "pending";
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
    const isDone = state === "done" && options.isRefresh !== true && options.isPresent(String(sha256));
    const next = state === "failed" ? "failed" : isDone ? "done" : "pending";
    this.#reopen.run(run, next, queue, next === "pending" ? null : this.#time.wallMs(), id);
    return next === "done" ? "present" : next;
  }
}

type Row = Readonly<Record<string, unknown>>;

/** A work of a row with the columns `id`, `key`, `ids` and `metadata`. */
export function workOfRow(row: Row): ListedWork {
  const { sources, ...metadata } = JSON.parse(String(row["metadata"] ?? "{}")) as WorkMetadata & {
    readonly sources?: MetadataSources;
  };
  const isEmpty = Object.keys(metadata).length === 0;
  return {
    id: Number(row["id"]),
    key: String(row["key"]),
    ids: JSON.parse(String(row["ids"])) as WorkIds,
    ...(isEmpty ? {} : { metadata, sources: sources ?? {} }),
  };
}

/** The identifiers by which works are compared. A URL is none: it may have a copy of several works. */
function idNames(ids: WorkIds): readonly string[] {
  return Object.entries(ids).flatMap(([scheme, id]) =>
    id === undefined || scheme === "url" ? [] : [`${scheme}:${id}`],
  );
}

function storedIds(ids: WorkIds): WorkIds {
  return ids.url === undefined ? ids : { ...ids, url: redactedUrl(ids.url) };
}
