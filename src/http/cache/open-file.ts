import { chmodSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { backoffMs } from "../../core/backoff.ts";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { APPLICATION_ID, CacheFile, SCHEMA, SCHEMA_VERSION } from "./file.ts";

export interface OpenOptions {
  readonly path: string;
  readonly maxBytes: number;
  readonly time: Time;
  readonly random: () => number;
  readonly onTrouble: (error: StoreError) => void;
}

/** The file and which one it is: the path may come to lead to another. */
export interface OpenedFile {
  readonly file: CacheFile;
  readonly identity: bigint | undefined;
}

/** Several processes that create one file at once are done in some milliseconds; a minute is somebody's stuck shell. */
const ATTEMPTS_MAX = 40;
const BACKOFF = { baseMs: 4, capMs: 250 };
/** The file itself first: SQLite deletes a log that lies beside an empty file, but would replay it into another. */
const SIDE_FILES = ["", "-wal", "-shm"] as const;
/** A sign beside the file while somebody sets it aside, which takes less than a millisecond. */
const MOVING = ".moving";
const MOVING_MS_MAX = 2000;

/**
 * Opens the file or creates it, however many do so at once. A file that is damaged or no database at all is set aside,
 * and a new one takes its place. One that belongs to another program, or to a newer version of this one, is left
 * alone: they may be using it at this moment, and it is we who were given the wrong path.
 * Undefined when it cannot be had; then trouble was told.
 */
export async function openCacheFile(options: OpenOptions): Promise<OpenedFile | undefined> {
  const { path, maxBytes, time, random, onTrouble } = options;
  let error: unknown;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    let identity: bigint | undefined;
    try {
      // Loaded only here, because some versions of Node that we support warn of it as experimental.
      const { DatabaseSync } = await import("node:sqlite");
      identity = present(path, time.wallMs());
      return { file: openDatabase(DatabaseSync, path, identity, maxBytes), identity };
    } catch (thrown) {
      error = thrown;
    }
    if (isBusy(error)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      time.setTimer(backoffMs(BACKOFF, attempt, random(), 1), resolve);
      await promise;
    } else if (!isDamage(error) || !tellAside(options, identity, error)) {
      break;
    }
  }
  const reason = error instanceof Error ? error.message : String(error);
  onTrouble(new StoreError(`nothing is cached: ${path} cannot be opened: ${reason}`, { cause: error }));
  return undefined;
}

/**
 * Renames what is damaged, never deletes it, and tells so. Only if the path still leads to that file: another process
 * may have set it aside already, and put a sound one there. One does so at a time, for the same reason.
 * False when the folder does not permit it.
 */
export function tellAside(
  { path, time, onTrouble }: OpenOptions,
  identity: bigint | undefined,
  cause: unknown,
): boolean {
  const sign = path + MOVING;
  try {
    closeSync(openSync(sign, "wx", 0o600));
  } catch (error) {
    // Another process is at it, or has just been.
    return error instanceof Error && "code" in error && error.code === "EEXIST";
  }
  try {
    if (identityOf(path) !== identity) return true;
    let aside = `${path}.damaged-${time.wallMs()}`;
    while (existsSync(aside)) aside += "-again";
    for (const suffix of SIDE_FILES) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    onTrouble(new StoreError(`the cache ${path} was damaged or no cache at all; it lies in ${aside} now`, { cause }));
    return true;
  } catch {
    return false;
  } finally {
    rmSync(sign, { force: true });
  }
}

/** Another process writes, or has just opened or closed the file. It passes. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED || code === SQLITE_PROTOCOL;
}

export function isDamage(error: unknown): boolean {
  const code = primaryCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** Somebody has moved or deleted the file while it was open. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_READONLY_DBMOVED;
}

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_CORRUPT = 11;
const SQLITE_PROTOCOL = 15;
const SQLITE_NOTADB = 26;
const SQLITE_READONLY_DBMOVED = 1032;

/** Extended codes hold the primary one in their lowest byte. */
function primaryCode(error: unknown): number | undefined {
  const isCoded = error instanceof Error && "errcode" in error && typeof error.errcode === "number";
  return isCoded ? Number(error.errcode) & 0xff : undefined;
}

/** Sees to it that there is a file, and answers which. */
function present(path: string, nowMs: number): bigint | undefined {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Created by us, since SQLite would let the umask decide who may read it. Its side files are then made alike.
  closeSync(openSync(path, "a", 0o600));
  const identity = identityOf(path);
  // After the look at the file: whoever begins to move it from now on sees that it is no longer the damaged one.
  const sign = statSync(path + MOVING, { throwIfNoEntry: false });
  if (sign === undefined) return identity;
  if (Math.abs(nowMs - sign.mtimeMs) < MOVING_MS_MAX) throw busy("it is being set aside");
  // Its process has died over it.
  rmSync(path + MOVING, { force: true });
  return identity;
}

function openDatabase(
  Database: typeof DatabaseSync,
  path: string,
  identity: bigint | undefined,
  maxBytes: number,
): CacheFile {
  // No busy timeout: SQLite would sleep, and the event loop with it.
  const db = new Database(path, { timeout: 0 });
  try {
    const isNew = inTransaction(db, "BEGIN", () => isEmptyOrThrow(db));
    // Had the file been replaced since, we would have the old one with the new one's log, and ruin both.
    if (identityOf(path) !== identity) throw busy("it was replaced");
    for (const suffix of SIDE_FILES) hide(path + suffix);
    db.exec("PRAGMA journal_mode = WAL");
    // A power cut may cost the file, which is set aside then, and nothing else is lost: that is cheaper than stalling the
    // event loop for the disk with every checkpoint.
    db.exec("PRAGMA synchronous = OFF");
    // The log is carried over a mebibyte at a time: four, as SQLite has it, stalled the event loop for 25 to 55 ms.
    db.exec("PRAGMA wal_autocheckpoint = 256");
    db.exec("PRAGMA journal_size_limit = 16777216");
    if (isNew) create(db);
    return new CacheFile(db, maxBytes);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Passes, as a lock of SQLite's own does. */
function busy(message: string): Error {
  return Object.assign(new Error(message), { errcode: SQLITE_BUSY });
}

/** Bodies and cookies are nobody else's business; a file of ours that others may read is one no longer. */
function hide(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) !== 0) chmodSync(path, 0o600);
}

/**
 * Throws where it is somebody else's: nothing is written until this is known. Asks three times, so it must be within a
 * transaction: else a file that another process has made ours in between would seem to be neither.
 */
function isEmptyOrThrow(db: DatabaseSync): boolean {
  const application = pragma(db, "application_id");
  const version = pragma(db, "user_version");
  if (application === APPLICATION_ID && version === SCHEMA_VERSION) return false;
  const isEmpty = db.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()?.["tables"] === 0;
  if (isEmpty && application === 0 && version === 0) return true;
  const owner = application === APPLICATION_ID ? `version ${version} of this program` : "another program";
  throw new Error(`it belongs to ${owner}`);
}

function create(db: DatabaseSync): void {
  inTransaction(db, "BEGIN IMMEDIATE", () => {
    // Another process may have been quicker between our look and our turn.
    if (!isEmptyOrThrow(db)) return;
    db.exec(SCHEMA);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  });
}

function inTransaction<Value>(db: DatabaseSync, begin: "BEGIN" | "BEGIN IMMEDIATE", act: () => Value): Value {
  db.exec(begin);
  try {
    const value = act();
    db.exec("COMMIT");
    return value;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function pragma(db: DatabaseSync, name: "application_id" | "user_version"): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

function identityOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}
