import type { Queryable } from "../../../stores/postgres/postgres-driver.ts";
import type { Reason } from "../../reason.ts";
import type { Work } from "../../work.ts";
import {
  type AddedWorks,
  type AddOptions,
  idNames,
  type ListedWork,
  type ManifestWorks,
  storedIds,
} from "../manifest-works.ts";
import { mergedJson } from "./merged-json.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresList } from "./postgres-list.ts";
import { addBatch } from "./postgres-listing.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

/** The tables `works` and `work_ids`. */
export class PostgresWorks implements ManifestWorks {
  readonly #connection: PostgresConnection;
  readonly #list: PostgresList;
  readonly #worker: PostgresWorker;

  constructor(connection: PostgresConnection, list: PostgresList, worker: PostgresWorker) {
    this.#connection = connection;
    this.#list = list;
    this.#worker = worker;
  }

  async add(run: number, works: readonly Work[], options: AddOptions): Promise<AddedWorks> {
    if (this.#list.isOpen) return this.#list.add(client => addBatch(client, run, works, options));
    const added = await this.#connection.transaction(each => addBatch(each, run, works, options));
    if (added.pending > 0) this.#worker.announceSoon();
    return added;
  }

  async addUnfinished(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): Promise<number> {
    const count = await this.#connection.transaction(async client => {
      // A work that a worker has stays with it: only its run changes.
      const pending = await client.query(
        `UPDATE works SET run = $1, not_before_ms = CASE WHEN taken_by IS NULL THEN 0 ELSE not_before_ms END
         WHERE state = 'pending'`,
        [run],
      );
      return (pending.rowCount ?? 0) + (await addFailed(client, run, reasons, isContinued));
    });
    if (count > 0) await this.#worker.announce();
    return count;
  }

  async addFailed(run: number, reason: Reason): Promise<number> {
    const count = await this.#connection.transaction(client => addFailed(client, run, [reason], false));
    if (count > 0) await this.#worker.announce();
    return count;
  }

  reopen(sha256s: readonly string[]): Promise<number> {
    return this.#connection.transaction(async client => {
      // The source is forgotten too: a conditional request would say that the file has not changed.
      await client.query("DELETE FROM sources WHERE sha256 = ANY($1)", [sha256s]);
      const { rowCount } = await client.query(
        `UPDATE works SET state = 'pending', queue = '', not_before_ms = 0, ended_ms = NULL
         WHERE state = 'done' AND id IN (SELECT work FROM work_files WHERE sha256 = ANY($1))`,
        [sha256s],
      );
      return rowCount ?? 0;
    });
  }

  update(work: ListedWork): Promise<number | undefined> {
    const { id, ids, metadata = {}, sources = {} } = work;
    const names = idNames(ids);
    return this.#connection.transaction(async client => {
      await this.#worker.check(client, id);
      await patch(client, id, storedIds(ids), JSON.stringify({ ...metadata, sources }));
      await client.query(
        `INSERT INTO work_ids (id, work) SELECT name, $2::bigint FROM unnest($1::text[]) AS name ORDER BY name
         ON CONFLICT (id) DO NOTHING`,
        [names, id],
      );
      const { rows } = await client.query(
        `SELECT work FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, position) JOIN work_ids ON work_ids.id = name
         WHERE work <> $2 ORDER BY position LIMIT 1`,
        [names, id],
      );
      return rows[0] === undefined ? undefined : Number(rows[0]["work"]);
    });
  }

  merge(work: ListedWork, into: number): Promise<boolean> {
    return this.#connection.transaction(async client => {
      // Both rows are locked in one order: two workers may merge the same two works at the same time.
      const { rows } = await client.query(
        "SELECT id, key, merged_into FROM works WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE",
        [[work.id, into]],
      );
      await this.#worker.check(client, work.id);
      const other = rows.find(row => row["id"] === into);
      // The other one was merged meanwhile: the identifiers that it had say where to.
      if (other === undefined || other["merged_into"] !== null) return false;
      await client.query("UPDATE work_ids SET work = $1 WHERE work = $2", [into, work.id]);
      await patch(client, into, storedIds(work.ids), "{}");
      await client.query(
        `UPDATE works SET state = 'done', reason = 'merged', message = $1, merged_into = $2, progress = NULL,
           taken_by = NULL, ended_ms = ${NOW_MS} WHERE id = $3`,
        [`the same work as ${other["key"]}`, into, work.id],
      );
      return true;
    });
  }

  async stateOf({ key, ids }: Work): Promise<string | undefined> {
    const [row] = await this.#connection.read(
      `SELECT coalesce(target.state, found.state) AS state FROM (
         SELECT state, merged_into, 0 AS position FROM works WHERE key = $1
         UNION ALL
         SELECT state, merged_into, position FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, position)
           JOIN work_ids ON work_ids.id = name JOIN works ON works.id = work
       ) AS found LEFT JOIN works AS target ON target.id = found.merged_into ORDER BY position LIMIT 1`,
      [key, idNames(ids)],
    );
    return row === undefined ? undefined : String(row["state"]);
  }
}

/** Merges JSON into a work. Read and written under a lock, because another work may be merged into it at the same time. */
async function patch(client: Queryable, id: number, ids: string, metadata: string): Promise<void> {
  const { rows } = await client.query("SELECT ids, metadata FROM works WHERE id = $1 FOR UPDATE", [id]);
  const [row] = rows;
  if (row === undefined) return;
  const known = mergedJson(String(row["metadata"] ?? "{}"), metadata);
  const { title = null, year = null } = JSON.parse(known) as { readonly title?: string; readonly year?: number };
  await client.query(
    "UPDATE works SET ids = $1, metadata = $2, title = coalesce($3, title), year = coalesce($4, year) WHERE id = $5",
    [mergedJson(String(row["ids"]), ids), known, title, year, id],
  );
}

async function addFailed(
  client: Queryable,
  run: number,
  reasons: readonly Reason[] | "all",
  isContinued: boolean,
): Promise<number> {
  const isWanted = reasons === "all" ? "" : "AND reason = ANY($2)";
  const { rowCount } = await client.query(
    `UPDATE works SET run = $1, state = 'pending', not_before_ms = 0, ended_ms = NULL,
       progress = ${isContinued ? "progress" : "NULL"} WHERE state = 'failed' ${isWanted}`,
    [run, ...(reasons === "all" ? [] : [reasons])],
  );
  return rowCount ?? 0;
}
