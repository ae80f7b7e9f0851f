import type { Queryable, SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import type { Reason } from "../../reason.ts";
import type { Work } from "../../work.ts";
import type { AttemptOfRun } from "../attempt-record.ts";
import type { Row } from "../manifest-row.ts";
import {
  type AddedWorks,
  type AddOptions,
  idNames,
  type ListedWork,
  type ManifestWorks,
  type MergeOptions,
  type MergeResult,
  mergeTarget,
  storedIds,
} from "../manifest-works.ts";
import { MERGE_COLUMNS, mergeOf, type WorkMerge } from "../work-merge.ts";
import { attemptPart } from "./attempt-values.ts";
import { type KnownTexts, textsOfRow, type WorkTexts } from "./known-texts.ts";
import { mergedJson } from "./merged-json.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresList } from "./postgres-list.ts";
import { batchAdder } from "./postgres-listing.ts";
import type { PostgresWorker } from "./postgres-worker.ts";
import { changeWorks } from "./work-batches.ts";

/**
 * Changes a work only if its row still has the texts that the new ones were made from: another work may be merged into
 * it at the same time. All parts see the rows from before the statement. A name that another process adds meanwhile is
 * neither inserted nor found, so `owned` is less than the number of names.
 */
const UPDATE_PARTS = [
  `updated AS (UPDATE works SET ids = $3, metadata = $4, title = coalesce($5, title), year = coalesce($6, year)
     WHERE id IN (SELECT id FROM changed) AND ids = $7 AND metadata IS NOT DISTINCT FROM $8 RETURNING id)`,
  `named AS (INSERT INTO work_ids (id, work) SELECT name, updated.id FROM updated, unnest($9::text[]) AS name ORDER BY name
     ON CONFLICT (id) DO NOTHING RETURNING id)`,
];
const UPDATE_RESULT = `SELECT EXISTS (SELECT 1 FROM updated) AS updated,
  (SELECT count(*) FROM named) + (SELECT count(*) FROM work_ids WHERE id = ANY($9)) AS owned,
  (SELECT string_agg(work::text, ' ' ORDER BY position)
   FROM unnest($9) WITH ORDINALITY AS wanted (name, position) JOIN work_ids ON work_ids.id = name
   WHERE work <> $1) AS others FROM changed`;

/** A work, and the works that it was merged into. Ends also if works were merged in a circle. */
const MERGE_CHAIN = `WITH RECURSIVE chain AS (
    SELECT id, merged_into FROM works WHERE id = $1
    UNION SELECT works.id, works.merged_into FROM chain JOIN works ON works.id = chain.merged_into
  ) SELECT id, merged_into FROM chain`;

/** The tables `works` and `work_ids`. */
export class PostgresWorks implements ManifestWorks {
  readonly #connection: PostgresConnection;
  readonly #list: PostgresList;
  readonly #worker: PostgresWorker;
  readonly #texts: KnownTexts;

  constructor(connection: PostgresConnection, list: PostgresList, worker: PostgresWorker, texts: KnownTexts) {
    this.#connection = connection;
    this.#list = list;
    this.#worker = worker;
    this.#texts = texts;
  }

  async add(run: number, works: readonly Work[], options: AddOptions): Promise<AddedWorks> {
    const addBatch = batchAdder(run, works, options);
    if (this.#list.isOpen) return this.#list.add(addBatch);
    const added = await this.#connection.transaction(addBatch);
    if (added.pending > 0) this.#worker.announceSoon();
    return added;
  }

  async addUnfinished(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): Promise<number> {
    // A work that a worker has taken stays with that worker: only its run changes.
    const pending = await changeWorks(
      this.#connection,
      "state = 'pending'",
      "run = $3, not_before_ms = CASE WHEN taken_by IS NULL THEN 0 ELSE not_before_ms END",
      [run],
    );
    const count = pending + (await this.#addFailed(run, reasons, isContinued));
    if (count > 0) await this.#worker.announce();
    return count;
  }

  async addFailed(run: number, reason: Reason): Promise<number> {
    const count = await this.#addFailed(run, [reason], false);
    if (count > 0) await this.#worker.announce();
    return count;
  }

  reopen(sha256s: readonly string[]): Promise<number> {
    return this.#connection.transaction(async client => {
      // The source is forgotten too: a conditional request would say that the file has not changed.
      await client.query("DELETE FROM sources WHERE sha256 = ANY($1)", [sha256s]);
      const { rowCount } = await client.query(
        `WITH listed AS (SELECT id FROM works WHERE state = 'done' AND merged_into IS NULL
           AND id IN (SELECT work FROM work_files WHERE sha256 = ANY($1)) ORDER BY id FOR UPDATE)
         UPDATE works SET state = 'pending', queue = '', not_before_ms = 0, ended_ms = NULL,
           sha256 = CASE WHEN sha256 <> ALL($1) THEN sha256 END
         FROM listed WHERE works.id = listed.id`,
        [sha256s],
      );
      return rowCount ?? 0;
    });
  }

  async update(work: ListedWork, request?: AttemptOfRun): Promise<number | undefined> {
    const { id, ids, metadata = {}, sources = {} } = work;
    const names = idNames(ids);
    for (let unrecorded = request; ; unrecorded = undefined) {
      const before = this.#texts.get(id) ?? (await this.#readTexts(id));
      const { title, year, ...texts } = patched(before, storedIds(ids), JSON.stringify({ ...metadata, sources }));
      const parameters: SqlParameter[] = [
        ...[texts.ids, texts.metadata, title, year, before.ids, before.metadata, names],
      ];
      const attemptParts = unrecorded === undefined ? [] : [attemptPart(unrecorded, parameters)];
      const rows = await this.#worker.apply(id, [...UPDATE_PARTS, ...attemptParts], UPDATE_RESULT, parameters);
      const [row] = rows ?? [];
      if (row?.["updated"] === true) {
        this.#texts.set(id, texts);
        const other = row["others"] === null ? undefined : await this.#otherOwner(id, String(row["others"]));
        if (other !== undefined) return other;
        if (Number(row["owned"]) === names.length) return undefined;
        // Another process has added one of the names at the same time: the next statement sees its owner.
      } else await this.#readTexts(id);
    }
  }

  merge(work: ListedWork, otherId: number, options: MergeOptions): Promise<MergeResult> {
    return this.#connection.transaction(async client => {
      // Both rows are locked in one order: two workers may merge the same two works at the same time.
      const { rows } = await client.query(
        `SELECT ${MERGE_COLUMNS} FROM works LEFT JOIN files ON files.sha256 = works.sha256
         WHERE works.id = ANY($1::bigint[]) ORDER BY works.id FOR UPDATE OF works`,
        [[work.id, otherId]],
      );
      await this.#worker.check(client, work.id);
      const [own, other] = [work.id, otherId].map(id => rows.find(row => row["id"] === id));
      // The other work was merged meanwhile: its identifiers now belong to the work that it was merged into.
      if (own === undefined || other === undefined || (await isMerged(client, other))) return "outdated";
      const merge = mergeOf(own, other, work, options);
      await applyMerge(client, merge);
      return merge.result;
    });
  }

  async stateOf({ key, ids }: Work): Promise<string | undefined> {
    const [row] = await this.#connection.read(
      `WITH RECURSIVE found AS (
         SELECT works.id, state, merged_into, 0 AS position FROM works WHERE key = $1
         UNION ALL
         SELECT works.id, state, merged_into, position FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, position)
           JOIN work_ids ON work_ids.id = name JOIN works ON works.id = work
         ORDER BY position LIMIT 1
       ), chain AS (
         SELECT id, state, merged_into FROM found
         UNION SELECT works.id, works.state, works.merged_into FROM chain JOIN works ON works.id = chain.merged_into
       ) SELECT state FROM chain ORDER BY merged_into IS NULL DESC LIMIT 1`,
      [key, idNames(ids)],
    );
    return row === undefined ? undefined : String(row["state"]);
  }

  #addFailed(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): Promise<number> {
    const progress = isContinued ? "" : "progress = NULL, inherited = NULL,";
    return changeWorks(
      this.#connection,
      `state = 'failed' ${reasons === "all" ? "" : "AND reason = ANY($4)"}`,
      `run = $3, state = 'pending', not_before_ms = 0, ${progress} ended_ms = NULL`,
      [run, ...(reasons === "all" ? [] : [reasons])],
    );
  }

  /** The first work of these owners of identifiers that is another one. An owner may have been merged into this work. */
  async #otherOwner(id: number, owners: string): Promise<number | undefined> {
    for (const owner of new Set(owners.split(" ").map(Number))) {
      const target = chainEnd(owner, await this.#connection.lookUp(MERGE_CHAIN, [owner]));
      if (target !== id) return target;
    }
    return undefined;
  }

  async #readTexts(id: number): Promise<WorkTexts> {
    const [row] = await this.#connection.lookUp("SELECT ids, metadata FROM works WHERE id = $1", [id]);
    const texts = row === undefined ? { ids: "{}", metadata: null } : textsOfRow(row);
    this.#texts.set(id, texts);
    return texts;
  }
}

async function isMerged(client: Queryable, { id, merged_into: target }: Row): Promise<boolean> {
  return target !== null && chainEnd(Number(id), (await client.query(MERGE_CHAIN, [Number(id)])).rows) !== id;
}

async function applyMerge(client: Queryable, { stays, merged, columns, missing }: WorkMerge): Promise<void> {
  const { ids, title, year, metadata, inherited } = columns;
  await client.query("UPDATE work_ids SET work = $1 WHERE work = $2", [stays.id, merged]);
  await client.query(
    `UPDATE work_files SET work = $1 WHERE work = $2 AND sha256 IS DISTINCT FROM $3
       AND sha256 NOT IN (SELECT sha256 FROM work_files WHERE work = $1)`,
    [stays.id, merged, missing],
  );
  await client.query("DELETE FROM work_files WHERE work = $1", [merged]);
  // A work that waits in the manifest is taken at once, because it has got further steps.
  await client.query(
    `UPDATE works SET ids = $2, title = coalesce($3, title), year = coalesce($4, year), metadata = $5, inherited = $6,
       queue = CASE WHEN taken_by IS NULL THEN '' ELSE queue END,
       not_before_ms = CASE WHEN taken_by IS NULL THEN 0 ELSE not_before_ms END WHERE id = $1`,
    [stays.id, ids, title, year, metadata, inherited],
  );
  if (missing === null)
    await client.query(
      `UPDATE works SET (sha256, url, resolver, licence, version) =
         (SELECT sha256, url, resolver, licence, version FROM works WHERE id = $2) WHERE id = $1 AND sha256 IS NULL`,
      [stays.id, merged],
    );
  await client.query(
    `UPDATE works SET state = 'done', reason = 'merged', message = $1, merged_into = $2, sha256 = NULL, progress = NULL,
       inherited = NULL, taken_by = NULL, ended_ms = ${NOW_MS} WHERE id = $3`,
    [`the same work as ${stays.key}`, stays.id, merged],
  );
}

/** The work that a work was merged into, by the rows of `MERGE_CHAIN`. */
function chainEnd(id: number, chain: readonly Row[]): number {
  const mergedInto = new Map(chain.map(row => [row["id"], row["merged_into"]]));
  return Number(mergeTarget(id, each => mergedInto.get(each)));
}

/** The texts of a work with further identifiers and metadata, and the columns that reports read. */
function patched(before: WorkTexts, ids: string, metadata: string) {
  const known = mergedJson(before.metadata ?? "{}", metadata);
  const { title = null, year = null } = JSON.parse(known) as { readonly title?: string; readonly year?: number };
  return { ids: mergedJson(ids, before.ids), metadata: known, title, year };
}
