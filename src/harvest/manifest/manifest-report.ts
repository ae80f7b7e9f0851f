/** Reads reports from a manifest: counts, failed works, and an export of every work with its attempts. */
import type { DatabaseSync } from "node:sqlite";

export interface ManifestRun {
  readonly id: number;
  readonly command: string;
  readonly state: string;
  readonly startedMs: number;
  readonly endedMs: number | undefined;
}

export interface ManifestReport {
  readonly works: {
    /** Without merged ones. */
    readonly total: number;
    readonly done: number;
    readonly failed: number;
    readonly pending: number;
    /** Identifiers of a work that the manifest also has under another identifier. */
    readonly merged: number;
  };
  /** Works per reason, the most frequent first. */
  readonly reasons: readonly { readonly state: string; readonly reason: string; readonly works: number }[];
  readonly files: { readonly count: number; readonly bytes: number };
  /** Works per resolver whose candidate was stored, the most frequent first. */
  readonly resolvers: readonly { readonly resolver: string; readonly works: number }[];
  readonly runs: readonly ManifestRun[];
}

export interface FailedWork {
  readonly key: string;
  readonly reason: string;
  readonly message: string | undefined;
}

/** @param run only works whose last run is this one */
export function reportOf(db: DatabaseSync, run?: number): ManifestReport {
  const only = run ?? null;
  const counts = db
    .prepare(
      `SELECT CASE WHEN merged_into IS NULL THEN state ELSE 'merged' END AS state, count(*) AS works FROM works
       WHERE ?1 IS NULL OR run = ?1 GROUP BY 1`,
    )
    .all(only);
  const count = (state: string) => Number(counts.find(row => row["state"] === state)?.["works"] ?? 0);
  const works = { done: count("done"), failed: count("failed"), pending: count("pending"), merged: count("merged") };
  const reasons = db
    .prepare(
      `SELECT state, reason, count(*) AS works FROM works
       WHERE state <> 'pending' AND merged_into IS NULL AND (?1 IS NULL OR run = ?1)
       GROUP BY state, reason ORDER BY state, works DESC, reason`,
    )
    .all(only);
  const resolvers = db
    .prepare(
      `SELECT resolver, count(*) AS works FROM works
       WHERE state = 'done' AND merged_into IS NULL AND (?1 IS NULL OR run = ?1)
       GROUP BY resolver ORDER BY works DESC, resolver`,
    )
    .all(only);
  const files = db
    .prepare(
      `SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM files
       WHERE sha256 IN (SELECT sha256 FROM works WHERE ?1 IS NULL OR run = ?1)`,
    )
    .get(only);
  const runs = db.prepare("SELECT id, command, state, started_ms, ended_ms FROM runs ORDER BY id DESC LIMIT 10").all();
  return {
    works: { total: works.done + works.failed + works.pending, ...works },
    reasons: reasons.map(row => ({
      state: String(row["state"]),
      reason: String(row["reason"]),
      works: Number(row["works"]),
    })),
    files: { count: Number(files?.["count"] ?? 0), bytes: Number(files?.["bytes"] ?? 0) },
    resolvers: resolvers.map(row => ({ resolver: String(row["resolver"]), works: Number(row["works"]) })),
    runs: runs.map(row => ({
      id: Number(row["id"]),
      command: String(row["command"]),
      state: String(row["state"]),
      startedMs: Number(row["started_ms"]),
      endedMs: row["ended_ms"] === null ? undefined : Number(row["ended_ms"]),
    })),
  };
}

export interface StoredFileRow {
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
  /** Works that use the file. */
  readonly works: number;
}

/** Every file that a work uses. Read at once, so that a change of the manifest does not disturb the reader. */
export function storedFiles(db: DatabaseSync): readonly StoredFileRow[] {
  return db
    .prepare(
      `SELECT path, files.sha256, bytes, count(*) AS works FROM files JOIN work_files USING (sha256)
       JOIN works ON works.id = work WHERE state = 'done' GROUP BY files.sha256 ORDER BY path`,
    )
    .all()
    .map(row => ({
      path: String(row["path"]),
      sha256: String(row["sha256"]),
      bytes: Number(row["bytes"]),
      works: Number(row["works"]),
    }));
}

/** How often resolvers were asked about a work, and how often their candidate was stored. */
export function resolverCounts(db: DatabaseSync): readonly { resolver: string; asked: number; stored: number }[] {
  return db
    .prepare(
      `SELECT resolver, count(DISTINCT work) AS asked,
         (SELECT count(*) FROM works WHERE works.resolver = attempts.resolver AND state = 'done') AS stored
       FROM attempts GROUP BY resolver`,
    )
    .all()
    .map(row => ({ resolver: String(row["resolver"]), asked: Number(row["asked"]), stored: Number(row["stored"]) }));
}

export function failedWorks(db: DatabaseSync, limit: number): readonly FailedWork[] {
  return db
    .prepare("SELECT key, reason, message FROM works WHERE state = 'failed' ORDER BY ended_ms DESC, id LIMIT ?")
    .all(limit)
    .map(row => ({
      key: String(row["key"]),
      reason: String(row["reason"]),
      message: row["message"] === null ? undefined : String(row["message"]),
    }));
}

/** Every work as a line of JSON, in the order in which works were added. Reads one row at a time. */
export function* exportLines(db: DatabaseSync): IterableIterator<string> {
  const attempts = db.prepare(
    `SELECT run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms FROM attempts
     WHERE work = ? ORDER BY id`,
  );
  const works = db.prepare(
    `SELECT works.id, key, ids, title, year, run, state, reason, message, url, resolver, licence, version,
       works.added_ms, ended_ms, works.sha256, files.path, files.bytes, files.media_type, files.flag, metadata,
       merged_into
     FROM works LEFT JOIN files ON files.sha256 = works.sha256 ORDER BY works.id`,
  );
  for (const row of works.iterate()) {
    const { id, ids, sha256, path, bytes, media_type, flag, metadata, added_ms, ended_ms, ...work } = row;
    const file = sha256 === null ? null : { path, sha256, bytes, media_type, flag };
    const times = { added: isoTime(added_ms), ended: isoTime(ended_ms) };
    const tried = attempts
      .all(Number(id))
      .map(({ ended_ms: endedMs, ...row }) => ({ ...row, ended: isoTime(endedMs) }));
    yield `${JSON.stringify({ ...work, ids: JSON.parse(String(ids)), metadata: JSON.parse(String(metadata)), file, ...times, attempts: tried })}\n`;
  }
}

function isoTime(ms: unknown): string | null {
  return ms === null || ms === undefined ? null : new Date(Number(ms)).toISOString();
}
