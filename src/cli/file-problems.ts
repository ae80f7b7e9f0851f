import { accessSync, constants, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DownloadError } from "../errors.ts";
import { usageError } from "./usage-error.ts";

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

/**
 * Throws a DownloadError if no file can be written at this path, so that an export fails before it reads anything, and a
 * ConfigError if the export would replace a file that it reads.
 * @param sources the files that the command reads; what is not a path, such as the URL of a manifest, has no effect
 */
export function checkTarget(flag: string, file: string, sources: readonly string[]): void {
  const problem = writeProblem(file);
  if (problem !== undefined) throw new DownloadError(`${flag}: ${problem}`);
  if (sources.some(source => isSameFile(source, file)))
    throw usageError(flag, `this command reads ${resolve(file)}, and would replace it; name another file`);
}

/** Whether both paths exist and lead to one file, also over links. */
function isSameFile(one: string, other: string): boolean {
  const [first, second] = [fileAt(one), fileAt(other)];
  if (first === undefined || second === undefined) return false;
  return first.isFile() && first.ino === second.ino && first.dev === second.dev;
}

function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // Such as a path below a file.
    return undefined;
  }
}
