import { randomUUID } from "node:crypto";
import { type FileHandle, link, lstat, mkdir, open, readlink, rename, rm, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { DownloadError } from "../errors.ts";
import { errnoOf, ifExists } from "./disk-errors.ts";
import { hashFile } from "./file-hash.ts";

/**
 * Replaces a file in one step: a reader finds the old content or the new content, never a part of it, also after a
 * crash. The folder must exist. A link stays, and its target is replaced. The new file has the permissions of the old
 * one. What is not a file, such as `/dev/stdout` or a named pipe, is written to. A full disk is a DownloadError.
 * @param draft where the new content is written first, on the same file system. @default a new name beside `path`
 */
export async function writeAtomically(
  path: string,
  content: string | Iterable<string> | AsyncIterable<string | Uint8Array>,
  draft?: string,
): Promise<void> {
  await replaceAtomically(path, file => file.writeFile(content), draft);
}

/** The same with content that `write` adds to the empty file. If `write` rejects, nothing is replaced. */
export async function replaceAtomically(
  path: string,
  write: (file: FileHandle) => Promise<void>,
  draft?: string,
): Promise<void> {
  try {
    await replaceContent(path, write, draft);
  } catch (error) {
    // The message of the system does not name the file. An error of the content has no such system call.
    const isOfWriting = error instanceof Error && "syscall" in error && WRITING.has(error.syscall);
    if (!isOfWriting) throw error;
    throw new DownloadError(`cannot write ${path}: ${errnoOf(error)}`, { cause: error });
  }
}

async function replaceContent(
  path: string,
  write: (file: FileHandle) => Promise<void>,
  draft: string | undefined,
): Promise<void> {
  const old = await ifExists(stat(path));
  const target = await linkTarget(path);
  // An open file of this process, such as `/dev/stdout`, gets the content after what was written to it before.
  if (target === undefined || (old !== undefined && !old.isFile())) {
    await using file = await open(path, "a");
    await write(file);
  } else await replaceFile(target, old?.mode, write, target === path ? draft : undefined);
}

async function replaceFile(
  path: string,
  mode: number | undefined,
  write: (file: FileHandle) => Promise<void>,
  draft = `${path}.${randomUUID().slice(0, 8)}.tmp`,
): Promise<void> {
  try {
    const file = await open(draft, "wx");
    try {
      if (mode !== undefined) await file.chmod(mode & PERMISSIONS);
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** System calls on an open file. */
const WRITING: ReadonlySet<unknown> = new Set(["write", "fsync"]);
const PERMISSIONS = 0o777;
/** As many as Linux follows. */
const LINKS_MAX = 40;

/**
 * The path that a link leads to, whether it exists or not; the path itself if it is no link. Undefined for an open file of
 * a process, whose link is no path.
 */
async function linkTarget(path: string): Promise<string | undefined> {
  let target = path;
  for (let links = 0; links < LINKS_MAX; links += 1) {
    if (!(await ifExists(lstat(target)))?.isSymbolicLink()) return target;
    if (/^\/(?:proc|dev\/fd)\//.test(target)) return undefined;
    target = resolve(dirname(target), await readlink(target));
  }
  throw new DownloadError(`cannot write ${path}: too many links`);
}

/** Renames a file or folder, creates the folder above the target, and makes the rename survive a power failure. */
export async function moveDurably(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
  await syncFolder(dirname(to));
}

/** Codes of a file system that has no hard links, or permits no more of them for a file. */
const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/**
 * Moves a file to a path without replacing another file. Where the file system has no hard links, a file that another
 * program creates at this very moment is replaced. May be repeated after a crash: if the target has the
 * expected SHA-256 already, the move counts as done. Throws a DownloadError if the target has other content.
 */
export async function moveToNewPath(from: string, to: string, sha256: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  try {
    // A link fails if the target exists; a rename would replace it.
    await link(from, to);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "EEXIST" || code === "ENOENT") {
      const found = await hashFile(to);
      if (found === undefined) throw new DownloadError(`cannot move ${from} to ${to}: ${code}`, { cause: error });
      if (found !== sha256) throw new DownloadError(`${to} exists with other content and is not overwritten`);
    } else if (code !== undefined && NO_LINKS.has(code)) await rename(from, to);
    else throw error;
  }
  await syncFolder(dirname(to));
  await rm(from, { force: true });
}

/**
 * A rename is safe against a power failure once its folder is flushed. Platforms that cannot open or flush a folder do
 * not need this.
 */
async function syncFolder(path: string): Promise<void> {
  let folder: Awaited<ReturnType<typeof open>>;
  try {
    folder = await open(path, "r");
  } catch (error) {
    if (["EISDIR", "EPERM", "EACCES"].includes(errnoOf(error) ?? "")) return;
    throw error;
  }
  try {
    await folder.sync();
  } catch (error) {
    if (!["EINVAL", "EPERM", "ENOTSUP", "EBADF"].includes(errnoOf(error) ?? "")) throw error;
  } finally {
    await folder.close();
  }
}
