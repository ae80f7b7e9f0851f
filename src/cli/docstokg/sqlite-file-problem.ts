import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { isDamage } from "../../stores/sqlite/sqlite-errors.ts";

const FORMATS = {
  store: async () => (await import("../../stores/sqlite/sqlite-connection.ts")).STORE_FORMAT,
  cache: async () => (await import("../../http/cache/cache-schema.ts")).CACHE_FORMAT,
} as const;

export interface SqliteFileProblem {
  readonly message: string;
  /** The file is missing or empty: no process has used it yet. */
  readonly isUnused: boolean;
}

/**
 * Why `sqlite:<file>` cannot be read as a shared store or cache; undefined if it can, or if `name` is not a SQLite
 * file. A program that opens a store creates a missing file and moves a damaged one aside. A command that only reads
 * must do neither: the name may be mistyped.
 */
export async function sqliteFileProblem(
  name: string,
  kind: keyof typeof FORMATS,
): Promise<SqliteFileProblem | undefined> {
  const [, path] = /^sqlite:(.+)$/s.exec(name) ?? [];
  if (path === undefined) return undefined;
  const file = resolve(path);
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) return { message: `file not found: ${file} (no process has used it yet)`, isUnused: true };
  if (size === 0) return { message: `${file} is empty (no process has used it yet)`, isUnused: true };
  // Opened with SQLite: closing a file handle of our own would release the locks that this process holds on the file.
  const { DatabaseSync } = await import("node:sqlite");
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true });
    const { application_id: application } = db.prepare("PRAGMA application_id").get() ?? {};
    if (application !== (await FORMATS[kind]()).applicationId)
      return { message: `${file} is a SQLite database, but not a ${kind} of docstokg`, isUnused: false };
  } catch (error) {
    // Any other error is reported when the file is used.
    if (!isDamage(error)) return undefined;
    return { message: `${file} is damaged or not a SQLite database: ${messageOf(error)}`, isUnused: false };
  } finally {
    db?.close();
  }
  return undefined;
}
