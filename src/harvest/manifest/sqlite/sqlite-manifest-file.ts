/**
 * The tables of the manifest file, and how it is opened. Collecting its content may have taken days. So a file that is
 * damaged or belongs to another program is never changed or moved: opening it is an error.
 */
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { backoffMs } from "../../../core/breaker/backoff.ts";
import { ConfigError, DownloadError, messageOf } from "../../../errors.ts";
import { errnoOf } from "../../../files/disk-errors.ts";
import { FileLock } from "../../../files/file-lock.ts";
import { makeFolder } from "../../../files/make-folder.ts";
import {
  type DatabaseFormat,
  ensureFile,
  inTransaction,
  openFile,
  versionOf,
} from "../../../stores/sqlite/database-file.ts";
import { type ReadConnection, ReadOnlyFile } from "../../../stores/sqlite/read-only-file.ts";
import { isBusy, isDamage, isReadFailure } from "../../../stores/sqlite/sqlite-errors.ts";
import { pause } from "../../../time/pause.ts";
import type { Time } from "../../../time/time.ts";
import { INVALID_JSON } from "../manifest-row.ts";
import { TABLE_NAMES } from "../manifest-tables.ts";

/**
 * Two columns have names of the first version: `place` is the SHA-256 of a URL (`urlHash` in the code), and `shelving` is
 * what to record of a complete file that is about to be moved to its path (`PartialDownload.destination`), as JSON.
 */
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

/** The announced length: after a 416 it shows whether a partial file is complete. */
const ADD_TOTAL_BYTES = "ALTER TABLE parts ADD COLUMN total_bytes INTEGER";

/**
 * A work gets all its identifiers, its metadata, several files, and the state of its wait. `queue` is the host queue of its
 * next step. That step may start at `not_before_ms`. `taken_by` is the run that has the work in memory. `progress` is what
 * the search for a copy has done so far. A work with `merged_into` was merged into that work, and has state `done`.
 */
const WORK_RECORDS = `
  ALTER TABLE works ADD COLUMN metadata TEXT;
  ALTER TABLE works ADD COLUMN queue TEXT NOT NULL DEFAULT '';
  ALTER TABLE works ADD COLUMN not_before_ms INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE works ADD COLUMN taken_by INTEGER;
  ALTER TABLE works ADD COLUMN progress TEXT;
  ALTER TABLE works ADD COLUMN merged_into INTEGER REFERENCES works (id);
  DROP INDEX works_pending;
  CREATE INDEX works_waiting ON works (run, queue, not_before_ms, id) WHERE state = 'pending' AND taken_by IS NULL;
  CREATE TABLE work_ids (
    id TEXT PRIMARY KEY,
    work INTEGER NOT NULL REFERENCES works (id)
  ) WITHOUT ROWID;
  INSERT OR IGNORE INTO work_ids (id, work)
    SELECT each.key || ':' || each.value, works.id FROM works, json_each(works.ids) AS each WHERE each.key <> 'url';
  CREATE TABLE work_files (
    work INTEGER NOT NULL REFERENCES works (id),
    role TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES files (sha256),
    url TEXT NOT NULL,
    resolver TEXT NOT NULL,
    PRIMARY KEY (work, sha256)
  ) WITHOUT ROWID;
  INSERT INTO work_files (work, role, sha256, url, resolver)
    SELECT works.id, 'article', works.sha256, coalesce(url, ''), coalesce(resolver, '')
    FROM works JOIN files USING (sha256) WHERE state = 'done';
  ALTER TABLE files ADD COLUMN flag TEXT;
`;

/** A merge moves the identifiers of one work; without the index it would read those of all works. */
const IDS_BY_WORK = "CREATE INDEX work_ids_by_work ON work_ids (work)";

const ROBOTS = `
  CREATE TABLE robots (
    origin TEXT PRIMARY KEY,
    status INTEGER NOT NULL,
    text TEXT NOT NULL,
    read_ms INTEGER NOT NULL
  ) WITHOUT ROWID;
`;

/** Two works that download one URL at the same time need two partial files. `work` comes first, to find those of a work. */
const PARTS_OF_WORKS = `
  CREATE TABLE parts_of_works (
    place TEXT NOT NULL,
    work INTEGER NOT NULL REFERENCES works (id),
    file TEXT NOT NULL,
    etag TEXT,
    shelving TEXT,
    total_bytes INTEGER,
    PRIMARY KEY (work, place)
  ) WITHOUT ROWID;
  INSERT INTO parts_of_works SELECT place, work, file, etag, shelving, total_bytes FROM parts;
  DROP TABLE parts;
  ALTER TABLE parts_of_works RENAME TO parts;
`;

/** The progress of works that were merged into a work, as a JSON array of texts: `TakenWork.inherited`. */
const ADD_INHERITED = "ALTER TABLE works ADD COLUMN inherited TEXT";

/** The flags with which `docstokg retry` continues the run, as JSON; NULL for a run of `docstokg/harvest`. */
const ADD_FLAGS = "ALTER TABLE runs ADD COLUMN flags TEXT";

/** "dtkm" in the file header marks the file as a manifest. */
export const MANIFEST_FORMAT: DatabaseFormat = {
  applicationId: 0x64_74_6b_6d,
  migrations: [SCHEMA, ADD_TOTAL_BYTES, WORK_RECORDS, IDS_BY_WORK, ROBOTS, PARTS_OF_WORKS, ADD_INHERITED, ADD_FLAGS],
};

const BACKOFF = { baseMs: 5, capMs: 50 };
/** Processes that open one file at the same time need milliseconds; a longer lock is held by a stuck process. */
const OPEN_TIMEOUT_MS = 5000;
/** Only one process writes, but a reader may delay a checkpoint. */
const BUSY_TIMEOUT_MS = 2000;
/** Each look-up of a file by its hash reads another page of the table. The default of 2 MiB holds few of them. */
const PAGE_CACHE_KIB = 16 * 1024;

/** The connection of a manifest, and those of its reads. */
export interface OpenManifestFile {
  readonly db: DatabaseSync;
  /** To be called for each read: it sees all changes, also those that `db` of a reader does not see. */
  connect(): Promise<ReadConnection<DatabaseSync>>;
  close(): void;
}

/** Opens or creates the manifest. Rejects with a ConfigError and leaves the file unchanged if it is not a manifest. */
export async function openManifestFile(path: string, time: Time): Promise<OpenManifestFile> {
  const db = await openWhenUnlocked(path, time, () => {
    // Loaded only here, because some supported versions of Node print a warning that it is experimental.
    const { DatabaseSync: Database } = process.getBuiltinModule("node:sqlite");
    makeFolder(dirname(path));
    const { db: opened } = openFile(Database, path, ensureFile(path), MANIFEST_FORMAT);
    try {
      configure(opened);
      return opened;
    } catch (error) {
      opened.close();
      throw error;
    }
  });
  const connect = async () => ({ content: db, [Symbol.dispose]: () => undefined });
  return { db, connect, close: () => db.close() };
}

/** Opens an existing manifest for reading. Its user need not be able to write the file, unless its format is older. */
export async function readManifestFile(path: string, time: Time): Promise<OpenManifestFile> {
  const file = new ReadOnlyFile(path, db => {
    const version = inTransaction(db, "BEGIN", () => versionOf(db, MANIFEST_FORMAT));
    if (version < MANIFEST_FORMAT.migrations.length) throw new OlderFormatError("the format of the manifest is older");
    configure(db);
    return db;
  });
  const first = await openWhenUnlocked(path, time, () => connectUnlessOlder(file));
  if (first === undefined) return openManifestFile(path, time);
  return {
    db: first.content,
    connect: () => openWhenUnlocked(path, time, () => file.connect()),
    close: () => {
      first[Symbol.dispose]();
      file.close();
    },
  };
}

class OlderFormatError extends Error {}

function connectUnlessOlder<Content>(file: ReadOnlyFile<Content>): ReadConnection<Content> | undefined {
  try {
    return file.connect();
  } catch (error) {
    if (error instanceof OlderFormatError) return undefined;
    throw error;
  }
}

/** Waits while another process has locked the file. */
async function openWhenUnlocked<Opened>(path: string, time: Time, open: () => Opened): Promise<Opened> {
  const deadlineUs = time.monotonicUs() + OPEN_TIMEOUT_MS * 1000;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return open();
    } catch (error) {
      if (!isBusy(error) || time.monotonicUs() >= deadlineUs) throw cannotOpen(path, error);
    }
    await pause(time, backoffMs(BACKOFF, attempt, Math.random(), 1));
  }
}

function configure(db: DatabaseSync): void {
  // `openFile` turns flushing off for stores; a power failure must not lose what the manifest records.
  db.exec(`PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS};
    PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  checkTables(db);
}

/** A file of this format without all its tables, such as one that another program has repaired. */
class IncompleteManifestError extends Error {}

function checkTables(db: DatabaseSync): void {
  const found = new Set(
    db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .all()
      .map(({ name }) => name),
  );
  const missing = TABLE_NAMES.find(table => !found.has(table));
  if (missing !== undefined) throw new IncompleteManifestError(`the table ${missing} is missing`);
}

/** Prepares the statements of a manifest; if that fails, because a table lacks a column, the file is closed. */
export function withStatements<Manifest>(path: string, file: OpenManifestFile, prepare: () => Manifest): Manifest {
  try {
    return prepare();
  } catch (error) {
    file.close();
    const isOther = isBusy(error) || isDamage(error);
    throw cannotOpen(path, isOther ? error : new IncompleteManifestError(messageOf(error), { cause: error }));
  }
}

/**
 * Locks the manifest against other runs until the lock is released or the process ends. Resolves to undefined if another
 * run holds the lock.
 */
export async function lockManifest(path: string): Promise<FileLock | undefined> {
  try {
    return await FileLock.tryAcquire(`${path}.lock`);
  } catch (error) {
    throw cannotOpen(path, error);
  }
}

/** Whether a run holds the lock. Creates no file. */
export async function isManifestLocked(path: string): Promise<boolean> {
  try {
    return await FileLock.isHeld(`${path}.lock`);
  } catch (error) {
    throw cannotOpen(path, error);
  }
}

/**
 * A DownloadError for an error of SQLite, such as a full disk, and for a record that another program has changed; any
 * other error unchanged.
 * @param isReader whether the manifest was opened for reading
 */
export function manifestError(path: string, error: unknown, isReader: boolean): unknown {
  if (error instanceof SyntaxError)
    return new DownloadError(`cannot read the manifest ${path}: ${INVALID_JSON}`, { cause: error });
  const isOfSqlite = error instanceof Error && "errcode" in error && "errstr" in error;
  if (!isOfSqlite) return error;
  const verb = isReader || isReadFailure(error) ? "read" : "write";
  return new DownloadError(`cannot ${verb} the manifest ${path}: ${error.message}`, { cause: error });
}

function cannotOpen(path: string, cause: unknown): ConfigError {
  return new ConfigError([{ where: "--manifest", path: "", message: describeCause(path, cause) }], { cause });
}

/** False if the path cannot be looked at: then opening it has the reason. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** False for a file that this user may not read: SQLite's message does not say so. */
function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (error) {
    return errnoOf(error) !== "EACCES";
  }
}

function describeCause(path: string, cause: unknown): string {
  if (isBusy(cause)) {
    const lockedS = OPEN_TIMEOUT_MS / 1000;
    return `another process has locked ${path} for ${lockedS} s; wait for it, or choose another file with --manifest`;
  }
  if (isFolder(path)) return `cannot use ${path} as manifest: it is a folder; name a file in it with --manifest`;
  if (!isReadable(path))
    return `cannot use ${path} as manifest: no permission to read the file; its owner can change that with chmod`;
  const why = isDamage(cause) ? "the file is damaged or not a SQLite database" : messageOf(cause);
  const advice =
    cause instanceof IncompleteManifestError
      ? "restore the file from a copy, or choose another"
      : "the file was not changed, choose another";
  return `cannot use ${path} as manifest: ${why}; ${advice} with --manifest`;
}
