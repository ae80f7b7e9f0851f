/**
 * A database file that several processes create, open and replace at the same time. Throws the errors of SQLite and of
 * the file system; never waits.
 */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { busyError, ForeignFileError, isBusy } from "./sqlite-errors.ts";

/** Which program a file belongs to, and what it must contain. */
export interface DatabaseFormat {
  /** The `application_id` of the file: distinguishes our files from those of other programs. */
  readonly applicationId: number;
  /** The SQL at index n migrates a file from `user_version` n to n + 1. Append only: never change a released one. */
  readonly migrations: readonly string[];
}

/** An open database and the inode of its file: the path may lead to another file later. */
export interface OpenedDatabase {
  readonly db: DatabaseSync;
  readonly identity: bigint | undefined;
}

/**
 * In the order of renaming. The database is first: SQLite deletes a log that is left beside an empty file, but would
 * replay it into a file with content.
 */
const SIDE_FILES = ["", "-wal", "-shm"] as const;
/**
 * A file beside the database, which a process locks while it renames the database. The operating system releases the
 * lock only when the process ends: a process that stalls while it renames must not find a new file at the path later.
 * The file is never deleted, because two processes could then lock two files of the same name.
 */
const MOVING = ".moving";

/**
 * Creates the file if there is none, and returns its inode. If `isPrivate`, only the owner may read the file and the
 * folders that are created for it. Otherwise the umask decides.
 */
export function ensureFile(path: string, isPrivate = true): bigint | undefined {
  if (!existsSync(path)) create(path, isPrivate);
  const identity = identityOf(path);
  // Checked after the inode was read: a process that starts renaming later compares inodes, and does not move a new file.
  if (existsSync(path + MOVING) && whileLocked(path, "BEGIN", () => true) === undefined)
    throw busyError("another process is renaming the damaged file");
  return identity;
}

/**
 * Opens the file whose inode `ensureFile` has returned. Throws for a file of another program or of a newer version of
 * this one. Such a file is not changed: the configured path is wrong, and that program may be using the file.
 */
export function openFile(
  Database: typeof DatabaseSync,
  path: string,
  identity: bigint | undefined,
  format: DatabaseFormat,
  isPrivate = true,
): OpenedDatabase {
  // No busy timeout: SQLite would sleep, and block the event loop.
  const db = new Database(path, { timeout: 0 });
  try {
    const version = inTransaction(db, "BEGIN", () => versionOf(db, format));
    // If the file was replaced meanwhile, SQLite has the old file open with the new log, and would ruin both.
    if (identityOf(path) !== identity) throw busyError("the file was replaced while it was opened");
    if (isPrivate) for (const suffix of SIDE_FILES) restrictAccess(path + suffix);
    db.exec("PRAGMA journal_mode = WAL");
    // The data has no value after a power failure, so no write waits for the disk.
    db.exec("PRAGMA synchronous = OFF");
    db.exec("PRAGMA wal_autocheckpoint = 256");
    if (version < format.migrations.length) {
      migrate(db, format);
      // Writes the header to the disk: if the file is damaged later, `hasOwnHeader` reads it there.
      db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    }
    return { db, identity };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Renames a damaged file and returns its new name; never deletes it. Undefined if another process is renaming it, or
 * has replaced it already: several processes may notice the damage at once.
 */
export function setAside(path: string, identity: bigint | undefined, wallMs: number): string | undefined {
  const isPrivate = ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS_MASK) === 0;
  if (!existsSync(path + MOVING)) create(path + MOVING, isPrivate);
  return whileLocked(path, "BEGIN EXCLUSIVE", () => {
    if (identityOf(path) !== identity) return undefined;
    let aside = `${path}.damaged-${wallMs}`;
    while (existsSync(aside)) aside += "-again";
    for (const suffix of SIDE_FILES) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    return aside;
  });
}

/**
 * Calls `run` while it holds the lock on `path.moving`; undefined if another process holds the lock. `BEGIN` takes a
 * lock that several processes can have at once, `BEGIN EXCLUSIVE` one that excludes all others.
 */
function whileLocked<Value>(path: string, begin: "BEGIN" | "BEGIN EXCLUSIVE", run: () => Value): Value | undefined {
  // Not imported, because some supported versions of Node print a warning that it is experimental.
  const { DatabaseSync: Database } = process.getBuiltinModule("node:sqlite");
  const lock = new Database(path + MOVING, { timeout: 0 });
  try {
    lock.exec(begin);
    // `BEGIN` locks at the first read.
    lock.prepare("SELECT count(*) FROM sqlite_schema").get();
    return run();
  } catch (error) {
    if (isBusy(error)) return undefined;
    throw error;
  } finally {
    lock.close();
  }
}

export function inTransaction<Value>(db: DatabaseSync, begin: "BEGIN" | "BEGIN IMMEDIATE", run: () => Value): Value {
  db.exec(begin);
  try {
    const value = run();
    db.exec("COMMIT");
    return value;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** SQLite's file header: its first bytes, its length, and the position of the `application_id`. */
const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 72;
const APPLICATION_ID_AT = 68;

/**
 * Whether the header of a damaged file says that this program wrote it. Reads the file as it is on the disk: SQLite
 * cannot open it. Must not be called while this process has the file open, because closing any handle of a file ends
 * all locks of the process on it.
 */
export function hasOwnHeader(path: string, { applicationId }: DatabaseFormat): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  const handle = openSync(path, "r");
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(handle);
  }
  return (
    header.toString("latin1", 0, MAGIC.length) === MAGIC && header.readUInt32BE(APPLICATION_ID_AT) === applicationId
  );
}

export function identityOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

/** The permissions of other users than the owner. */
const OTHERS_MASK = 0o077;

/**
 * Creates an empty file. SQLite would create it with the mode of the umask; it gives its side files the mode of the
 * database. The file gets its final name after it is closed. A process that closes any handle of a file loses all its
 * locks on that file, also the locks of a database that it has open.
 */
function create(path: string, isPrivate: boolean): void {
  mkdirSync(dirname(path), { recursive: true, mode: isPrivate ? 0o700 : 0o777 });
  const temporary = `${path}.${randomUUID()}`;
  writeFileSync(temporary, "", { flag: "wx", mode: isPrivate ? 0o600 : 0o666 });
  try {
    linkSync(temporary, path);
  } catch (error) {
    // Another process was faster, or the file system has no hard links: then SQLite creates the file, and its mode is
    // restricted afterwards.
    if (!["EEXIST", "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error) ?? "")) throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Removes the permissions of other users. */
function restrictAccess(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & OTHERS_MASK) !== 0) chmodSync(path, 0o600);
}

/**
 * The format version of the file; 0 for an empty file. Throws for a file of another program or of a newer version. Must
 * run within a transaction: it reads three values, and another process may be creating the tables.
 */
export function versionOf(db: DatabaseSync, { applicationId, migrations }: DatabaseFormat): number {
  const application = pragma(db, "application_id");
  const version = pragma(db, "user_version");
  const isEmpty = db.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()?.["tables"] === 0;
  if (isEmpty && application === 0 && version === 0) return 0;
  if (application !== applicationId) throw new ForeignFileError("the file is a database of another program");
  if (version > migrations.length)
    throw new ForeignFileError(
      `the file has format version ${version}, but this version of docstokg reads up to ${migrations.length}`,
    );
  return version;
}

function migrate(db: DatabaseSync, format: DatabaseFormat): void {
  inTransaction(db, "BEGIN IMMEDIATE", () => {
    // The version is read again under the lock: another process may have migrated the file meanwhile.
    for (const step of format.migrations.slice(versionOf(db, format))) db.exec(step);
    db.exec(`PRAGMA application_id = ${format.applicationId}`);
    db.exec(`PRAGMA user_version = ${format.migrations.length}`);
  });
}

function pragma(db: DatabaseSync, name: "application_id" | "user_version"): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
