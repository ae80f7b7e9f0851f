import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { isUnusablePath } from "./sqlite-errors.ts";

/**
 * Opens a file for a user who may only read it. A file without its log cannot be opened by a user who may not create the
 * log; no process has such a file open, so nothing changes it meanwhile.
 */
export function openReadOnly(Database: typeof DatabaseSync, path: string): DatabaseSync {
  const db = new Database(path, { readOnly: true, timeout: 0 });
  try {
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    return db;
  } catch (error) {
    db.close();
    if (!isUnusablePath(error) || existsSync(`${path}-wal`)) throw error;
    return new Database(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true, timeout: 0 });
  }
}
