import { accessSync, constants, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DownloadError } from "../errors.ts";

/** Why a file cannot be read, for messages. The system's own message about a folder does not name it. */
export function readProblem(file: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  const path = resolve(file);
  if (code === undefined) throw error;
  if (code === "ENOENT") return `file not found: ${path}`;
  return code === "EISDIR" ? `${path} is a folder; expected a file` : `cannot read ${path} (${code})`;
}

/** Why no file can be written at this path; undefined if one can. */
export function writeProblem(file: string): string | undefined {
  const path = resolve(file);
  const folder = dirname(path);
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
      return `${path} is a folder; expected a file`;
  } catch (error) {
    return `cannot write ${path} (${(error as NodeJS.ErrnoException).code})`;
  }
  try {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found === undefined) return `cannot write ${path}: folder not found: ${folder}`;
    if (!found.isDirectory()) return `cannot write ${path}: ${folder} is not a folder`;
  } catch (error) {
    return `cannot write ${path} (${(error as NodeJS.ErrnoException).code})`;
  }
  const problem = folderProblem(folder);
  return problem === undefined ? undefined : `cannot write ${path}: ${problem}`;
}

/** Why no file can be created in this folder; undefined if one can. */
export function folderProblem(folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `no permission to write in ${folder} (${(error as NodeJS.ErrnoException).code})`;
  }
}

/** Throws a DownloadError if no file can be written at this path, so that an export fails before it reads anything. */
export function checkTarget(flag: string, file: string): void {
  const problem = writeProblem(file);
  if (problem !== undefined) throw new DownloadError(`${flag}: ${problem}`);
}
