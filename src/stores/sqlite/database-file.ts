/**
 * A database file that several processes open, whichever comes first. Throws SQLite's own errors, or those of the file
 * system; nobody sleeps in here.
 */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { busyError } from "./sqlite-errors.ts";

/** Whose file it is, and what must be in it. */
export interface DatabaseFormat {
  /** In `application_id`: tells our files from those of others. */
  readonly applicationId: number;
  /** Each brings the file from the version of its index to the next, in `user_version`. Never changed, only added to. */
  readonly migrations: readonly string[];
}

/** The database and which file it is in: the path may come to lead to another. */
export interface OpenedDatabase {
  readonly db: DatabaseSync;
  readonly identity: bigint | undefined;
}

/** The file itself first: SQLite deletes a log that lies beside an empty file, but would replay it into another. */
const SIDE_FILES = ["", "-wal", "-shm"] as const;
/** A sign beside the file while somebody sets it aside, which takes less than a millisecond. */
const MOVING = ".moving";
const MOVING_MS_MAX = 2000;

/** Sees to it that there is a file, and answers which. */
export function ensureFile(path: string, wallMs: number): bigint | undefined {
  if (!existsSync(path)) create(path);
  const identity = identityOf(path);
  // After the look at the file: whoever begins to move it from now on sees that it is no longer the damaged one.
  const sign = statSync(path + MOVING, { throwIfNoEntry: false });
  if (sign === undefined) return identity;
  if (Math.abs(wallMs - sign.mtimeMs) < MOVING_MS_MAX) throw busyError("it is being set aside");
  // Its process has died over it.
  rmSync(path + MOVING, { force: true });
  return identity;
}

/**
 * Opens what `ensureFile` has seen. A file that belongs to another program, or to a newer version of this one, is left
 * alone: they may be using it at this moment, and it is we who were given the wrong path.
 */
export function openFile(
  Database: typeof DatabaseSync,
  path: string,
  identity: bigint | undefined,
  format: DatabaseFormat,
): OpenedDatabase {
  // No busy timeout: SQLite would sleep, and the event loop with it.
  const db = new Database(path, { timeout: 0 });
  try {
    const version = inTransaction(db, "BEGIN", () => versionOf(db, format));
    // Had the file been replaced since, we would have the old one with the new one's log, and ruin both.
    if (identityOf(path) !== identity) throw busyError("it was replaced");
    for (const suffix of SIDE_FILES) restrictAccess(path + suffix);
    db.exec("PRAGMA journal_mode = WAL");
    // What is in here is worth nothing after a power cut, so nobody waits for the disk.
    db.exec("PRAGMA synchronous = OFF");
    db.exec("PRAGMA wal_autocheckpoint = 256");
    if (version < format.migrations.length) migrate(db, format);
    return { db, identity };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Renames a damaged file, never deletes it; answers its new name. Undefined when the path leads to another file already,
 * or somebody else is at it: several processes may notice the damage, and one puts a sound file there.
 */
export function setAside(path: string, identity: bigint | undefined, wallMs: number): string | undefined {
  const sign = path + MOVING;
  try {
    closeSync(openSync(sign, "wx", 0o600));
  } catch (error) {
    if (codeOf(error) === "EEXIST") return undefined;
    throw error;
  }
  try {
    if (identityOf(path) !== identity) return undefined;
    let aside = `${path}.damaged-${wallMs}`;
    while (existsSync(aside)) aside += "-again";
    for (const suffix of SIDE_FILES) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    return aside;
  } finally {
    rmSync(sign, { force: true });
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

export function identityOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

/**
 * An empty file that only its owner may read; SQLite would let the umask decide, and makes its side files alike.
 * It gets its name when it is closed again: a process that closes a file, by whatever handle, loses all its locks on
 * it, and with them those of a database that another part of it has open.
 */
function create(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const unnamed = `${path}.${randomUUID()}`;
  writeFileSync(unnamed, "", { flag: "wx", mode: 0o600 });
  try {
    linkSync(unnamed, path);
  } catch (error) {
    // Somebody was quicker. And where there are no links, SQLite creates it, and it is hidden afterwards.
    if (!["EEXIST", "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error) ?? "")) throw error;
  } finally {
    rmSync(unnamed, { force: true });
  }
}

/** A file of ours that others may read is one no longer. */
function restrictAccess(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) !== 0) chmodSync(path, 0o600);
}

/**
 * 0 for an empty file. Throws where it is somebody else's: nothing is written until this is known. Asks three times, so
 * it must be within a transaction: else a file that another process has made ours in between would seem to be neither.
 */
function versionOf(db: DatabaseSync, { applicationId, migrations }: DatabaseFormat): number {
  const application = pragma(db, "application_id");
  const version = pragma(db, "user_version");
  const isEmpty = db.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()?.["tables"] === 0;
  if (isEmpty && application === 0 && version === 0) return 0;
  if (application !== applicationId) throw new Error("it belongs to another program");
  if (version > migrations.length) throw new Error(`it belongs to a newer version of this program (${version})`);
  return version;
}

function migrate(db: DatabaseSync, format: DatabaseFormat): void {
  inTransaction(db, "BEGIN IMMEDIATE", () => {
    // Another process may have been quicker between our look and our turn.
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
