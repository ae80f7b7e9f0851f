/** The meaning of SQLite's error codes for a store. */

const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_CANTOPEN = 14;
const SQLITE_PROTOCOL = 15;
const SQLITE_NOTADB = 26;
const SQLITE_IOERR_READ = 266;
const SQLITE_IOERR_SHORT_READ = 522;
const SQLITE_READONLY_DBMOVED = 1032;
const SQLITE_IOERR_DELETE_NOENT = 5898;

/** The file belongs to another program, or to a newer version of this one: it is never changed. */
export class ForeignFileError extends Error {}

/**
 * Another process writes, or has just opened or closed the file: try again. SQLite reports an I/O error if two processes
 * delete the log that is left beside an empty file at the same time.
 */
export function isBusy(error: unknown): boolean {
  if (extendedCode(error) === SQLITE_IOERR_DELETE_NOENT) return true;
  const code = primaryCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED || code === SQLITE_PROTOCOL;
}

/** A read that gets fewer bytes than there must be is damage too: the log was truncated. */
export function isDamage(error: unknown): boolean {
  if (extendedCode(error) === SQLITE_IOERR_SHORT_READ) return true;
  const code = primaryCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** The content of the file cannot be read: it is damaged, lacks a table, or its disk has failed. */
export function isReadFailure(error: unknown): boolean {
  if (isDamage(error) || primaryCode(error) === SQLITE_ERROR) return true;
  return extendedCode(error) === SQLITE_IOERR_READ;
}

/** The errors of paths that cannot be used as they are. */
const PATH_CODES = ["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "EISDIR", "ENOENT", "ENAMETOOLONG", "ELOOP"];

/** This user may not read or write the file or its folder, or the path cannot name a file. */
export function isUnusablePath(error: unknown): boolean {
  const code = primaryCode(error);
  if (code === SQLITE_READONLY || code === SQLITE_CANTOPEN) return true;
  return error instanceof Error && "code" in error && PATH_CODES.includes(String(error.code));
}

/** The file was moved or deleted while it was open. */
export function isMoved(error: unknown): boolean {
  return extendedCode(error) === SQLITE_READONLY_DBMOVED;
}

/** An error that `isBusy` accepts, for a state that ends soon. */
export function busyError(message: string): Error {
  return Object.assign(new Error(message), { errcode: SQLITE_BUSY });
}

/** An error that `isDamage` accepts. */
export function damageError(message: string): Error {
  return Object.assign(new Error(message), { errcode: SQLITE_CORRUPT });
}

/** Extended codes hold the primary one in their lowest byte. */
function primaryCode(error: unknown): number | undefined {
  const code = extendedCode(error);
  return code === undefined ? undefined : code & 0xff;
}

function extendedCode(error: unknown): number | undefined {
  const isCoded = error instanceof Error && "errcode" in error && typeof error.errcode === "number";
  return isCoded ? Number(error.errcode) : undefined;
}
