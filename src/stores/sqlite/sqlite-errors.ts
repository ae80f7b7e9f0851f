/** What SQLite's error codes mean to a store. */

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_CORRUPT = 11;
const SQLITE_PROTOCOL = 15;
const SQLITE_NOTADB = 26;
const SQLITE_READONLY_DBMOVED = 1032;

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

/** Passes, as a lock of SQLite's own does. */
export function busyError(message: string): Error {
  return Object.assign(new Error(message), { errcode: SQLITE_BUSY });
}

/** What lies in a sound file, and cannot be understood. */
export function damageError(message: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { errcode: SQLITE_CORRUPT });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Extended codes hold the primary one in their lowest byte. */
function primaryCode(error: unknown): number | undefined {
  const isCoded = error instanceof Error && "errcode" in error && typeof error.errcode === "number";
  return isCoded ? Number(error.errcode) & 0xff : undefined;
}
