import type { DatabaseSync, StatementSync } from "node:sqlite";
import { workOfRow } from "../manifest/manifest-works.ts";
import type { MetadataSources, WorkIds, WorkMetadata } from "../work.ts";

/** A file of a work. */
export interface RecordFile {
  /** Relative to the output folder. */
  readonly path: string;
  readonly role: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly mediaType: string;
  readonly flag: string | undefined;
}

/** A work as it is exported: its identifiers, what is known of it, and its files. */
export interface WorkRecord {
  readonly key: string;
  readonly ids: WorkIds;
  readonly state: string;
  readonly reason: string | undefined;
  readonly metadata: WorkMetadata;
  readonly sources: MetadataSources;
  readonly url: string | undefined;
  readonly resolver: string | undefined;
  readonly licence: string | undefined;
  readonly version: string | undefined;
  /** The article first. */
  readonly files: readonly RecordFile[];
}

const COLUMNS = "id, key, ids, metadata, state, reason, url, resolver, licence, version";
const FILES_OF_WORK = `SELECT path, role, sha256, bytes, media_type, flag FROM work_files JOIN files USING (sha256)
  WHERE work = ? ORDER BY role, path`;

/** Every work of a manifest in the order of the lists, without merged ones. Reads one row at a time. */
export function* workRecords(db: DatabaseSync): IterableIterator<WorkRecord> {
  const files = db.prepare(FILES_OF_WORK);
  const works = db.prepare(`SELECT ${COLUMNS} FROM works WHERE merged_into IS NULL ORDER BY id`);
  for (const row of works.iterate()) yield recordOf(row, files);
}

/** One work by its row id, which must exist. */
export function workRecord(db: DatabaseSync, id: number): WorkRecord {
  return recordOf(db.prepare(`SELECT ${COLUMNS} FROM works WHERE id = ?`).get(id) ?? {}, db.prepare(FILES_OF_WORK));
}

function recordOf(row: Readonly<Record<string, unknown>>, files: StatementSync): WorkRecord {
  const { key, ids, metadata = {}, sources = {} } = workOfRow(row);
  return {
    ...{ key, ids, metadata, sources, state: String(row["state"]), reason: textOf(row["reason"]) },
    ...{ url: textOf(row["url"]), resolver: textOf(row["resolver"]) },
    ...{ licence: textOf(row["licence"]) ?? metadata.licence, version: textOf(row["version"]) },
    files: row["state"] === "done" ? files.all(Number(row["id"])).map(fileOf) : [],
  };
}

function fileOf(row: Readonly<Record<string, unknown>>): RecordFile {
  return {
    path: String(row["path"]),
    role: String(row["role"]),
    sha256: String(row["sha256"]),
    bytes: Number(row["bytes"]),
    mediaType: String(row["media_type"]),
    flag: textOf(row["flag"]),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
