import type { MetadataSources, WorkIds, WorkMetadata } from "../work.ts";
import { type Row, textOf } from "./manifest-row.ts";
import type { ManifestWorker } from "./manifest-workers.ts";
import { workOfRow } from "./manifest-works.ts";

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
    /** Works that were merged into another work, because their identifiers name the same one. */
    readonly merged: number;
  };
  /** Works per reason, the most frequent first. */
  readonly reasons: readonly { readonly state: string; readonly reason: string; readonly works: number }[];
  readonly files: { readonly count: number; readonly bytes: number };
  /** Works per resolver whose candidate was stored, the most frequent first. */
  readonly resolvers: readonly { readonly resolver: string; readonly works: number }[];
  /** The last ten, the newest first. */
  readonly runs: readonly ManifestRun[];
}

export interface FailedWork {
  readonly key: string;
  readonly reason: string;
  readonly message: string | undefined;
}

export interface StoredFileRow {
  readonly path: string;
  /** The role of the file in its works; `article` if it is the article of one of them. */
  readonly role: string;
  readonly sha256: string;
  readonly bytes: number;
  /** Works that use the file. */
  readonly works: number;
}

export interface ResolverCount {
  readonly resolver: string;
  /** Works about which it was asked, or for which one of its candidates was requested. */
  readonly asked: number;
  /** Works whose article is one of its candidates. */
  readonly stored: number;
}

/** The requests of one resolver, over all works: its queries, and the downloads of its candidates. */
export interface ResolverWorkload {
  readonly resolver: string;
  readonly queries: number;
  /** From the start of the request to the end of its response, waits included. */
  readonly queryMs: number;
  readonly downloads: number;
  readonly downloadMs: number;
  /** Received bytes. */
  readonly bytes: number;
}

/** The files of one role and media type that works use. */
export interface FileKindCount {
  readonly role: string;
  readonly mediaType: string;
  readonly files: number;
  readonly bytes: number;
  /** Size of the largest. */
  readonly maxBytes: number;
}

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

/** One query or download for a work. */
export interface WorkAttempt {
  readonly run: number;
  /** `ask`, `robots` or `fetch`. */
  readonly step: string;
  readonly resolver: string;
  /** The host of the URL; undefined if there was none. */
  readonly host: string | undefined;
  readonly status: number | undefined;
  readonly reason: string;
  readonly message: string | undefined;
  readonly elapsedMs: number;
  readonly endedMs: number;
}

/** A work and its attempts, the oldest first. */
export interface WorkHistory {
  readonly key: string;
  readonly title: string | undefined;
  readonly state: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly attempts: readonly WorkAttempt[];
}

/** What is read from a manifest: counts, failed works, and every work with its files or its attempts. */
export interface ManifestReports {
  /** @param run only works whose last run is this one */
  report(run?: number): Promise<ManifestReport>;
  /**
   * The flags of the latest run that has recorded them, as given to `beginRun`; undefined if there is none. Not of a run
   * that was interrupted without works: its list was rejected.
   */
  latestFlags(): Promise<string | undefined>;
  /** Every file that a work uses. Read at once, so that a change of the manifest does not disturb the reader. */
  storedFiles(): Promise<readonly StoredFileRow[]>;
  resolverCounts(): Promise<readonly ResolverCount[]>;
  /** The works that failed last. */
  failedWorks(limit: number): Promise<readonly FailedWork[]>;
  /** Every work with its attempts as a line of JSON, in the order in which works were added. Memory stays bounded. */
  attemptLines(): AsyncIterable<string>;
  /** Every work in the order of the lists, without merged ones. Memory stays bounded. */
  workRecords(): AsyncIterable<WorkRecord>;
  workloads(): Promise<readonly ResolverWorkload[]>;
  /** The most frequent first within each role. */
  fileKinds(): Promise<readonly FileKindCount[]>;
  /** One work by its row id, which must exist. */
  workRecord(id: number): Promise<WorkRecord>;
  /** Undefined if the manifest has no work with this key. */
  workHistory(key: string): Promise<WorkHistory | undefined>;
  /** The processes that work on runs, also dead ones whose lease has not ended. Empty for a manifest in a file. */
  workers(): Promise<readonly ManifestWorker[]>;
}

/** The rows from which a report is made. */
export interface ReportRows {
  /** `state` (or `merged`), `works`. */
  readonly counts: readonly Row[];
  /** `state`, `reason`, `works`. */
  readonly reasons: readonly Row[];
  /** `resolver`, `works`. */
  readonly resolvers: readonly Row[];
  /** `count`, `bytes`. */
  readonly files: Row | undefined;
  readonly runs: readonly Row[];
}

export function reportOfRows({ counts, reasons, resolvers, files, runs }: ReportRows): ManifestReport {
  const count = (state: string) => Number(counts.find(row => row["state"] === state)?.["works"] ?? 0);
  const works = { done: count("done"), failed: count("failed"), pending: count("pending"), merged: count("merged") };
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

export function storedFileOfRow(row: Row): StoredFileRow {
  return {
    path: String(row["path"]),
    role: String(row["role"]),
    sha256: String(row["sha256"]),
    bytes: Number(row["bytes"]),
    works: Number(row["works"]),
  };
}

/** The statement of `ManifestReports.latestFlags`. */
export const LATEST_FLAGS = `SELECT flags FROM runs WHERE flags IS NOT NULL
    AND (state <> 'interrupted' OR EXISTS (SELECT 1 FROM works WHERE run = runs.id))
  ORDER BY id DESC LIMIT 1`;

/** The statement whose rows `resolverCountOfRow` reads. Each table is read once, because every run begins with it. */
export const RESOLVER_COUNTS = `SELECT asked.resolver, asked, coalesce(stored, 0) AS stored
  FROM (SELECT resolver, count(DISTINCT work) AS asked FROM attempts GROUP BY resolver) AS asked
  LEFT JOIN (SELECT resolver, count(*) AS stored FROM works WHERE state = 'done' GROUP BY resolver) AS stored
    ON stored.resolver = asked.resolver ORDER BY 1`;

export function resolverCountOfRow(row: Row): ResolverCount {
  return { resolver: String(row["resolver"]), asked: Number(row["asked"]), stored: Number(row["stored"]) };
}

/** The statement whose rows `workloadOfRow` reads. */
export const WORKLOADS = `SELECT resolver, sum(CASE WHEN step = 'fetch' THEN 0 ELSE 1 END) AS queries,
    sum(CASE WHEN step = 'fetch' THEN 0 ELSE elapsed_ms END) AS query_ms,
    sum(CASE WHEN step = 'fetch' THEN 1 ELSE 0 END) AS downloads,
    sum(CASE WHEN step = 'fetch' THEN elapsed_ms ELSE 0 END) AS download_ms, sum(bytes) AS bytes
  FROM attempts GROUP BY resolver ORDER BY resolver`;

export function workloadOfRow(row: Row): ResolverWorkload {
  return {
    resolver: String(row["resolver"]),
    queries: Number(row["queries"]),
    queryMs: Number(row["query_ms"]),
    downloads: Number(row["downloads"]),
    downloadMs: Number(row["download_ms"]),
    bytes: Number(row["bytes"]),
  };
}

/** The statement whose rows `fileKindOfRow` reads. A file that several works use counts once. */
export const FILE_KINDS = `SELECT role, media_type, count(*) AS files, sum(bytes) AS bytes, max(bytes) AS max_bytes
  FROM (SELECT min(role) AS role, files.sha256, media_type, bytes FROM files JOIN work_files USING (sha256)
    JOIN works ON works.id = work WHERE state = 'done' GROUP BY files.sha256, media_type, bytes) AS stored
  GROUP BY role, media_type ORDER BY role, files DESC, media_type`;

export function fileKindOfRow(row: Row): FileKindCount {
  return {
    role: String(row["role"]),
    mediaType: String(row["media_type"]),
    files: Number(row["files"]),
    bytes: Number(row["bytes"]),
    maxBytes: Number(row["max_bytes"]),
  };
}

export function failedWorkOfRow(row: Row): FailedWork {
  return { key: String(row["key"]), reason: String(row["reason"]), message: textOf(row["message"]) };
}

/** The columns of `works` that `recordOfRow` reads. */
export const RECORD_COLUMNS = "id, key, ids, metadata, state, reason, url, resolver, licence, version";

/** @param files rows of `work_files` joined with `files` */
export function recordOfRow(row: Row, files: readonly Row[]): WorkRecord {
  const { key, ids, metadata = {}, sources = {} } = workOfRow(row);
  return {
    ...{ key, ids, metadata, sources, state: String(row["state"]), reason: textOf(row["reason"]) },
    ...{ url: textOf(row["url"]), resolver: textOf(row["resolver"]) },
    ...{ licence: textOf(row["licence"]) ?? metadata.licence, version: textOf(row["version"]) },
    files: row["state"] === "done" ? files.map(recordFileOfRow) : [],
  };
}

function recordFileOfRow(row: Row): RecordFile {
  return {
    path: String(row["path"]),
    role: String(row["role"]),
    sha256: String(row["sha256"]),
    bytes: Number(row["bytes"]),
    mediaType: String(row["media_type"]),
    flag: textOf(row["flag"]),
  };
}

/** A work with its attempts as a line of JSON. The caller has converted numbers that its driver returns as text. */
export function attemptLine(row: Row, attempts: readonly Row[]): string {
  const { id, ids, sha256, path, bytes, media_type, flag, metadata, added_ms, ended_ms, ...work } = row;
  const file = sha256 === null ? null : { path, sha256, bytes, media_type, flag };
  const times = { added: isoTime(added_ms), ended: isoTime(ended_ms) };
  const requests = attempts.map(({ ended_ms: endedMs, ...attempt }) => ({ ...attempt, ended: isoTime(endedMs) }));
  const parsed = { ids: JSON.parse(String(ids)), metadata: JSON.parse(String(metadata)) };
  return `${JSON.stringify({ ...work, ...parsed, file, ...times, attempts: requests })}\n`;
}

export const HISTORY_WORK = "id, key, title, state, reason, message";
export const HISTORY_ATTEMPTS = "run, step, resolver, url, status, reason, message, elapsed_ms, ended_ms";

/** The history of rows with the columns `HISTORY_WORK` and `HISTORY_ATTEMPTS`. */
export function historyOfRows(work: Row, attempts: readonly Row[]): WorkHistory {
  return {
    key: String(work["key"]),
    title: textOf(work["title"]),
    state: String(work["state"]),
    reason: textOf(work["reason"]),
    message: textOf(work["message"]),
    attempts: attempts.map(row => ({
      run: Number(row["run"]),
      step: String(row["step"]),
      resolver: String(row["resolver"]),
      host: URL.parse(textOf(row["url"]) ?? "")?.host,
      status: row["status"] === null ? undefined : Number(row["status"]),
      reason: String(row["reason"]),
      message: textOf(row["message"]),
      elapsedMs: Number(row["elapsed_ms"]),
      endedMs: Number(row["ended_ms"]),
    })),
  };
}

function isoTime(ms: unknown): string | null {
  return ms === null || ms === undefined ? null : new Date(Number(ms)).toISOString();
}
