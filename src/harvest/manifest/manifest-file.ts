/**
 * The manifest's file: which tables it has, and how it is opened. What is in it took days to get, so that a file which is
 * damaged or somebody else's is left as it is, and said so.
 */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { ConfigError, DownloadError } from "../../errors.ts";
import { type DatabaseFormat, ensureFile, openFile } from "../../stores/sqlite/database-file.ts";
import { pause } from "../../stores/sqlite/open-database.ts";
import { isBusy, isDamage, messageOf } from "../../stores/sqlite/sqlite-errors.ts";
import type { Time } from "../../time/time.ts";

const SCHEMA = `
  CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    command TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    state TEXT NOT NULL CHECK (state IN ('running', 'ended', 'interrupted'))
  );
  CREATE TABLE works (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    ids TEXT NOT NULL,
    title TEXT,
    year INTEGER,
    run INTEGER NOT NULL REFERENCES runs (id),
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
    reason TEXT,
    message TEXT,
    sha256 TEXT REFERENCES files (sha256),
    url TEXT,
    resolver TEXT,
    licence TEXT,
    version TEXT,
    added_ms INTEGER NOT NULL,
    ended_ms INTEGER
  );
  CREATE INDEX works_pending ON works (run, id) WHERE state = 'pending';
  CREATE INDEX works_by_run ON works (run, state);
  CREATE TABLE attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    work INTEGER NOT NULL REFERENCES works (id),
    run INTEGER NOT NULL REFERENCES runs (id),
    step TEXT NOT NULL CHECK (step IN ('ask', 'robots', 'fetch')),
    resolver TEXT NOT NULL,
    url TEXT NOT NULL,
    status INTEGER,
    reason TEXT NOT NULL,
    message TEXT,
    bytes INTEGER NOT NULL,
    sha256 TEXT,
    elapsed_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL
  );
  CREATE INDEX attempts_by_work ON attempts (work);
  CREATE TABLE files (
    sha256 TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    added_ms INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE sources (
    place TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES files (sha256),
    etag TEXT,
    last_modified TEXT,
    run INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE parts (
    place TEXT PRIMARY KEY,
    work INTEGER NOT NULL REFERENCES works (id),
    file TEXT NOT NULL,
    etag TEXT,
    shelving TEXT
  ) WITHOUT ROWID;
  CREATE INDEX parts_by_work ON parts (work);
`;

/** "dtkm" in its head tells our files from those of others. */
const MANIFEST_FORMAT: DatabaseFormat = { applicationId: 0x64_74_6b_6d, migrations: [SCHEMA] };

const PAUSE = { baseMs: 5, capMs: 50 };
/** Several processes that open one file at once are done in some milliseconds; more is somebody's stuck shell. */
const OPEN_TIMEOUT_MS = 5000;
/** One process writes at a time, so that nobody waits; but a reader may be in the way of a checkpoint for a moment. */
const BUSY_TIMEOUT_MS = 2000;

/** Opens the manifest, or makes one. Rejects with a ConfigError, having changed nothing, when the file is none. */
export async function openManifestFile(path: string, time: Time): Promise<DatabaseSync> {
  const deadlineUs = time.monotonicUs() + OPEN_TIMEOUT_MS * 1000;
  for (let attempt = 1; ; attempt += 1) {
    try {
      // Loaded only here, because some versions of Node that we support warn of it as experimental.
      const { DatabaseSync } = await import("node:sqlite");
      mkdirSync(dirname(path), { recursive: true });
      const { db } = openFile(DatabaseSync, path, ensureFile(path, time.wallMs()), MANIFEST_FORMAT);
      // A file that was renamed must not be forgotten, and a power cut must not damage the record of days.
      db.exec(`PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      return db;
    } catch (error) {
      if (!isBusy(error) || time.monotonicUs() >= deadlineUs) throw cannotOpen(path, error);
    }
    await pause(time, backoffMs(PAUSE, attempt, 1, undefined));
  }
}

/**
 * A hold on the manifest that ends with the process, however it ends: a lock of the system, not a file that stays behind.
 * Undefined when another process has it.
 */
export async function lockManifest(path: string): Promise<{ release(): void } | undefined> {
  const { DatabaseSync } = await import("node:sqlite");
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true });
    const held = new DatabaseSync(`${path}.lock`, { timeout: 0 });
    db = held;
    // In this mode a lock that was taken is kept; in WAL mode nobody would be kept out.
    held.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return { release: () => held.close() };
  } catch (error) {
    db?.close();
    if (isBusy(error)) return undefined;
    throw cannotOpen(path, error);
  }
}

/** What SQLite says of a disk that is full, or has gone, in words of ours; any other error as it is. */
export function manifestError(error: unknown): unknown {
  const isOfSqlite = error instanceof Error && "errcode" in error && "errstr" in error;
  if (!isOfSqlite) return error;
  return new DownloadError(`the manifest cannot be written: ${error.message}`, { cause: error });
}

function cannotOpen(path: string, cause: unknown): ConfigError {
  const why = isDamage(cause) ? "it is damaged, or no database at all" : messageOf(cause);
  const message = `${path} cannot be used as a manifest: ${why}; it was left as it is, name another with --manifest`;
  return new ConfigError([{ where: "--manifest", path: "", message }], { cause });
}
