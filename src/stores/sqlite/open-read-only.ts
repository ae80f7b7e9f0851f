import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { isUnusablePath } from "./sqlite-errors.ts";

export interface ReadOnlyDatabase {
  readonly db: DatabaseSync;
  /** The connection sees nothing that is written after it was opened. */
  readonly isImmutable: boolean;
}

/**
 * Opens a file for a user who may only read it. If the log of the file (`-wal`) is missing, SQLite creates it, which
 * this user may not do. Then no process has the file open, so it is opened as a file that does not change
 * (`immutable`).
 */
export function openReadOnly(Database: typeof DatabaseSync, path: string): ReadOnlyDatabase {
  const db = new Database(path, { readOnly: true, timeout: 0 });
  try {
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    return { db, isImmutable: false };
  } catch (error) {
    db.close();
    if (!isUnusablePath(error) || existsSync(`${path}-wal`)) throw error;
    const immutable = new Database(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true, timeout: 0 });
    return { db: immutable, isImmutable: true };
  }
}
