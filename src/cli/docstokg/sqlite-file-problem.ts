import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isDamage, messageOf } from "../../stores/sqlite/sqlite-errors.ts";

/**
 * Why `sqlite:<file>` cannot be read; undefined if it can, or if `name` is not a SQLite file. A program that opens a
 * store creates a missing file and moves a damaged one aside. A command that only reads must do neither: the name may
 * be mistyped.
 */
export async function sqliteFileProblem(name: string): Promise<string | undefined> {
  const [, path] = /^sqlite:(.+)$/s.exec(name) ?? [];
  if (path === undefined) return undefined;
  const file = resolve(path);
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) return `file not found: ${file} (no process has used it yet)`;
  if (size === 0) return `${file} is empty (no process has used it yet)`;
  // Opened with SQLite: closing a file handle of our own would release the locks that this process holds on the file.
  const { DatabaseSync } = await import("node:sqlite");
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true });
    db.prepare("PRAGMA schema_version").get();
  } catch (error) {
    // Any other error is reported when the file is used.
    return isDamage(error) ? `${file} is damaged or not a SQLite database: ${messageOf(error)}` : undefined;
  } finally {
    db?.close();
  }
  return undefined;
}
