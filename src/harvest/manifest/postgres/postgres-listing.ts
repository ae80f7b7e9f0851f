/** Adds a batch of works in a few statements: a list may have a million. */

import type { Queryable } from "../../../stores/postgres/postgres-driver.ts";
import { RepeatTransaction } from "../../../stores/postgres/postgres-errors.ts";
import type { Work, WorkIds } from "../../work.ts";
import { withFacts } from "../../work-facts.ts";
import { fileOfRow } from "../manifest-files.ts";
import type { Row } from "../manifest-row.ts";
import {
  type AddedWorks,
  type AddOptions,
  idNames,
  type ListedCounts,
  listedFacts,
  mergeTarget,
} from "../manifest-works.ts";
import { type InheritingColumns, relistedColumns } from "../work-merge.ts";
import { NOW_MS } from "./postgres-clock.ts";

/** A work of the batch that the manifest does not have. */
interface NewWork {
  /** With what further entries of the batch have added. */
  work: Work;
  readonly queue: string;
  /** Its identifiers, and those of further entries of the batch that are the same work. */
  readonly names: Set<string>;
}

/** A work of the batch that the manifest has. */
interface KnownWork {
  readonly row: Row;
  /** The new columns of the row, if the list has added something. */
  columns: InheritingColumns | undefined;
  readonly names: Set<string>;
  next: { readonly state: string; readonly queue: string; readonly hasFile: boolean } | undefined;
}

type BatchWork = NewWork | KnownWork;

/** The works of the batch, by key and by identifier. */
interface Batch {
  readonly byKey: Map<string, BatchWork>;
  readonly byName: Map<string, BatchWork>;
}

/** A function that adds the works in the transaction of the caller, and again if the transaction is repeated. */
export function batchAdder(
  run: number,
  works: readonly Work[],
  options: AddOptions,
): (client: Queryable) => Promise<AddedWorks> {
  let isRepeated = false;
  return client => {
    const readsAllKeys = isRepeated;
    isRepeated = true;
    return addBatch(client, run, works, options, readsAllKeys);
  };
}

async function addBatch(
  client: Queryable,
  run: number,
  works: readonly Work[],
  options: AddOptions,
  readsAllKeys: boolean,
): Promise<AddedWorks> {
  const batch = await readKnown(client, works, readsAllKeys);
  const queues = new Map<string, number>();
  const counts = { pending: 0, present: 0, failed: 0, queues };
  for (const work of works) {
    const queue = options.queueOf?.(work) ?? "";
    const state = assign(batch, run, work, queue, options);
    if (state === undefined) continue;
    counts[state] += 1;
    if (state === "pending") queues.set(queue, (queues.get(queue) ?? 0) + 1);
  }
  await insertNew(client, run, batch);
  await updateKnown(client, run, batch);
  const failedIds = knownIn(batch).flatMap(({ row, next }) => (next?.state === "failed" ? [Number(row["id"])] : []));
  return { ...counts, failedIds };
}

/**
 * The works of the batch that the manifest has, locked in the order of their ids: workers may change them. A work is
 * inserted together with its identifiers. So if the key is one of them and no work has that identifier, no work has the
 * key.
 * @param readsAllKeys also looks up such keys, because another process has inserted one of them meanwhile
 */
async function readKnown(client: Queryable, works: readonly Work[], readsAllKeys: boolean): Promise<Batch> {
  const names = works.flatMap(({ ids }) => idNames(ids));
  const ownersOfNames = () => client.query("SELECT id, work FROM work_ids WHERE id = ANY($1)", [names]);
  const named = await ownersOfNames();
  const isOwned = new Set(named.rows.map(({ id }) => id));
  const keys = works.flatMap(({ key, ids }) =>
    readsAllKeys || isOwned.has(key) || !idNames(ids).includes(key) ? [key] : [],
  );
  if (keys.length === 0 && named.rows.length === 0) return { byKey: new Map(), byName: new Map() };
  const byId = await lockWorks(client, keys, [...new Set(named.rows.map(({ work }) => Number(work)))]);
  // Read again: a work may have been merged before it was locked.
  const owners = await ownersOfNames();
  const files = await client.query("SELECT sha256, path, bytes, media_type, flag FROM files WHERE sha256 = ANY($1)", [
    [...byId.values()].flatMap(({ sha256 }) => (typeof sha256 === "string" ? [sha256] : [])),
  ]);
  const fileRows = new Map(files.rows.map(row => [row["sha256"], row]));
  const knownById = new Map<unknown, KnownWork>();
  for (const [id, row] of byId)
    knownById.set(id, {
      row: { ...row, file: fileRows.get(row["sha256"]) },
      names: new Set(),
      columns: undefined,
      next: undefined,
    });
  const targetOf = (id: unknown) => knownById.get(mergeTarget(id, each => byId.get(each)?.["merged_into"]));
  const byKey = new Map<string, BatchWork>();
  const byName = new Map<string, BatchWork>();
  for (const [id, row] of byId) {
    const target = targetOf(id);
    if (target !== undefined) byKey.set(String(row["key"]), target);
  }
  for (const owner of owners.rows) {
    const target = targetOf(owner["work"]);
    if (target !== undefined) byName.set(String(owner["id"]), target);
  }
  return { byKey, byName };
}

/** Locks the works with these keys or ids, and the works that they were merged into. Returns the rows by their ids. */
async function lockWorks(
  client: Queryable,
  keys: readonly string[],
  ids: readonly number[],
): Promise<ReadonlyMap<unknown, Row>> {
  const columns = "works.id, key, ids, metadata, inherited, state, sha256, run, taken_by, merged_into";
  // Not `id IN (SELECT …)`: PostgreSQL would read all works for each batch.
  const found = await client.query(
    `SELECT ${columns} FROM works WHERE key = ANY($1) OR id = ANY($2) ORDER BY id FOR UPDATE`,
    [keys, ids],
  );
  const byId = new Map<unknown, Row>();
  for (let rows = found.rows; rows.length > 0; ) {
    for (const row of rows) byId.set(row["id"], row);
    const targets = rows.flatMap(({ merged_into: target }) =>
      target === null || byId.has(target) ? [] : [Number(target)],
    );
    if (targets.length === 0) break;
    const sql = `SELECT ${columns} FROM works WHERE id = ANY($1) ORDER BY id FOR UPDATE`;
    rows = (await client.query(sql, [targets])).rows;
  }
  return byId;
}

/** Adds a work to the batch. Returns what the run does with it; undefined if the list has named it before. */
function assign(
  batch: Batch,
  run: number,
  work: Work,
  queue: string,
  options: AddOptions,
): keyof ListedCounts | undefined {
  const names = idNames(work.ids);
  const found = batch.byKey.get(work.key) ?? ownerOf(batch, work.ids);
  const target = found ?? { work, queue, names: new Set<string>() };
  for (const name of names) {
    target.names.add(name);
    if (!batch.byName.has(name)) batch.byName.set(name, target);
  }
  if (found === undefined) {
    batch.byKey.set(work.key, target);
    return "pending";
  }
  if ("work" in found) found.work = withFacts({ id: 0, ...found.work }, "list", work.ids, work.metadata);
  else found.columns = relistedColumns({ ...found.row, ...found.columns }, work) ?? found.columns;
  // The list names the work twice.
  if ("work" in found || found.next !== undefined || Number(found.row["run"]) === run) return undefined;
  const { state, file } = found.row;
  const hasFile = file !== undefined && options.isPresent(fileOfRow(file as Row));
  const isDone = state === "done" && hasFile && options.isRefresh !== true;
  const staysFailed = state === "failed" && options.isRetry !== true;
  const next = staysFailed ? "failed" : isDone ? "done" : "pending";
  found.next = { state: next, queue, hasFile };
  return next === "done" ? "present" : next;
}

function ownerOf({ byName }: Batch, ids: WorkIds): BatchWork | undefined {
  for (const name of idNames(ids)) {
    const owner = byName.get(name);
    if (owner !== undefined) return owner;
  }
  return undefined;
}

async function insertNew(client: Queryable, run: number, { byKey }: Batch): Promise<void> {
  const added = [...byKey.values()].filter(each => "work" in each);
  if (added.length === 0) return;
  const facts = added.map(({ work }) => listedFacts(work));
  const { rows } = await client.query(
    `INSERT INTO works (key, ids, title, year, metadata, run, state, queue, added_ms)
       SELECT key, ids, title, year, metadata, $7::bigint, 'pending', queue, ${NOW_MS}
       FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[]) WITH ORDINALITY
         AS listed (key, ids, title, year, metadata, queue, position) ORDER BY position
     ON CONFLICT (key) DO NOTHING RETURNING id, key`,
    [
      added.map(({ work }) => work.key),
      facts.map(({ ids }) => ids),
      facts.map(({ title }) => title),
      facts.map(({ year }) => year),
      facts.map(({ metadata }) => metadata),
      added.map(({ queue }) => queue),
      run,
    ],
  );
  // Another process has listed one of them at the same time: the transaction is repeated, and finds it.
  if (rows.length < added.length) throw new RepeatTransaction();
  const idByKey = new Map(rows.map(row => [row["key"], Number(row["id"])]));
  const owned = added.flatMap(({ work, names }) => [...names].map(name => ({ name, id: idByKey.get(work.key) ?? 0 })));
  await insertNames(client, owned);
}

function knownIn({ byKey }: Batch): readonly KnownWork[] {
  return [...new Set(byKey.values())].filter(each => "row" in each);
}

async function updateKnown(client: Queryable, run: number, batch: Batch): Promise<void> {
  const known = knownIn(batch);
  const idOf = ({ row }: KnownWork) => Number(row["id"]);
  await insertNames(
    client,
    known.flatMap(each => [...each.names].map(name => ({ name, id: idOf(each) }))),
  );
  await setColumns(client, known);
  const changed = known.filter(({ next }) => next !== undefined);
  if (changed.length === 0) return;
  // A work that a worker has taken stays with that worker: only its run changes. Works that were merged in a circle are
  // resolved again: see `mergeTarget`. A file that is missing is no file of the work: if the work fails, it has none.
  await client.query(
    `UPDATE works SET run = $1, state = next.state,
       merged_into = CASE WHEN next.state = 'pending' THEN NULL ELSE merged_into END,
       queue = CASE WHEN taken_by IS NULL THEN next.queue ELSE works.queue END,
       not_before_ms = CASE WHEN taken_by IS NULL THEN 0 ELSE not_before_ms END,
       sha256 = CASE WHEN next.has_file THEN sha256 END,
       ended_ms = CASE WHEN next.state = 'pending' THEN NULL ELSE ${NOW_MS} END
     FROM unnest($2::bigint[], $3::text[], $4::text[], $5::boolean[]) AS next (id, state, queue, has_file)
     WHERE works.id = next.id`,
    [
      run,
      changed.map(idOf),
      changed.map(({ next }) => next?.state ?? ""),
      changed.map(({ next }) => next?.queue ?? ""),
      changed.map(({ next }) => next?.hasFile === true),
    ],
  );
}

async function setColumns(client: Queryable, known: readonly KnownWork[]): Promise<void> {
  const changed = known.flatMap(({ row, columns }) =>
    columns === undefined ? [] : [{ id: Number(row["id"]), columns }],
  );
  if (changed.length === 0) return;
  await client.query(
    `UPDATE works SET ids = added.ids, title = coalesce(added.title, works.title),
       year = coalesce(added.year, works.year), metadata = added.metadata, inherited = added.inherited
     FROM unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[])
       AS added (id, ids, title, year, metadata, inherited)
     WHERE works.id = added.id`,
    [
      changed.map(({ id }) => id),
      changed.map(({ columns }) => columns.ids),
      changed.map(({ columns }) => columns.title),
      changed.map(({ columns }) => columns.year),
      changed.map(({ columns }) => columns.metadata),
      changed.map(({ columns }) => columns.inherited),
    ],
  );
}

/** In the order of the names, so that two processes that add the same names do not deadlock. */
async function insertNames(
  client: Queryable,
  owned: readonly { readonly name: string; readonly id: number }[],
): Promise<void> {
  if (owned.length === 0) return;
  await client.query(
    `INSERT INTO work_ids (id, work) SELECT name, work FROM unnest($1::text[], $2::bigint[]) AS owned (name, work)
     ORDER BY name ON CONFLICT (id) DO NOTHING`,
    [owned.map(({ name }) => name), owned.map(({ id }) => id)],
  );
}
