import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import type { Environment } from "../policy/environment.ts";

const WRITABLE_BY_OTHERS = 0o022;

/**
 * The file of `multiprocess`: one for all processes of a user on this machine. Throws a ConfigError if it would be in a
 * temporary folder that another user controls.
 */
export function userStoreFile(env: Environment): string {
  return join(env["XDG_RUNTIME_DIR"] || ownTemporaryFolder(), "docstokg", "limits.db");
}

/**
 * All users may create folders in the temporary folder, so another user may have created this one. It is created before
 * it is checked: a folder that belongs to this user cannot be replaced by another one.
 */
function ownTemporaryFolder(): string {
  const userId = process.getuid?.();
  const folder = join(tmpdir(), `docstokg-${userId ?? "user"}`);
  // On Windows each user has a temporary folder.
  if (userId === undefined) return folder;
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It exists, or the file cannot be created: then opening the store fails with the reason.
  }
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return folder;
  const problem = found.isSymbolicLink()
    ? "is a link"
    : !found.isDirectory()
      ? "is not a folder"
      : found.uid !== userId
        ? `belongs to another user (id ${found.uid})`
        : (found.mode & WRITABLE_BY_OTHERS) !== 0
          ? "can be written by other users"
          : undefined;
  if (problem === undefined) return folder;
  const advice = "remove it, or set XDG_RUNTIME_DIR to a folder that only you can write";
  const message = `${problem}, so the store "multiprocess" cannot use it; ${advice}`;
  throw new ConfigError([{ where: folder, path: "", message }]);
}
