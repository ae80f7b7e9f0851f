import { accessSync, constants, existsSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { codeOf } from "../../http/error-code.ts";
import { isDamage } from "../../stores/sqlite/sqlite-errors.ts";

const FORMATS = {
  store: async () => (await import("../../stores/sqlite/sqlite-connection.ts")).STORE_FORMAT,
  cache: async () => (await import("../../http/cache/cache-schema.ts")).CACHE_FORMAT,
} as const;

export interface SqliteFileProblem {
  readonly message: string;
  /** The file is missing or empty: no process has used it yet. */
  readonly isUnused: boolean;
  /** Its folder is missing too. */
  readonly lacksFolder?: boolean;
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
  const found = statOf(file);
  if (found === undefined) return missingFile(file);
  if (found.isDirectory()) return { message: `${file} is a folder; expected a file`, isUnused: false };
  if (found.size === 0) return { message: `${file} is empty (no process has used it yet)`, isUnused: true };
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

/** Undefined if there is no such file. */
function statOf(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch (error) {
    // A part of the path is a file.
    if (codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/** A program that opens the store creates its folder too, if it can. */
function missingFile(file: string): SqliteFileProblem {
  const folder = dirname(file);
  const what = `file not found: ${file}`;
  const found = nearestExisting(folder);
  if (found === folder && statSync(found).isDirectory())
    return { message: `${what} (no process has used it yet)`, isUnused: true };
  const problem = whyNoFolderIn(found);
  if (problem !== undefined)
    return { message: `${what}; the folder ${folder} cannot be created: ${problem}`, isUnused: false };
  const message = `${what}; the folder ${folder} is missing too (no process has used it yet)`;
  return { message, isUnused: true, lacksFolder: true };
}

function nearestExisting(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || at === dirname(at)) return at;
}

function whyNoFolderIn(path: string): string | undefined {
  if (!statSync(path).isDirectory()) return `${path} is not a folder`;
  try {
    accessSync(path, constants.W_OK);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
