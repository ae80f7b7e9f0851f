import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a small file whole or not at all: nobody ever reads half of it, and a crash leaves the old one. */
export async function writeAtomically(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${randomUUID().slice(0, 8)}.tmp`;
  try {
    const file = await open(draft, "wx");
    try {
      await file.writeFile(text);
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

/** Moves a finished file or folder to its place, and sees to it that it is still there after a power failure. */
export async function moveDurably(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
  await syncFolder(dirname(to));
}

/** A rename is on the disk when its folder is. Not every platform lets a folder be opened; those need no such thing. */
export async function syncFolder(path: string): Promise<void> {
  let folder: Awaited<ReturnType<typeof open>>;
  try {
    folder = await open(path, "r");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EISDIR" || code === "EPERM" || code === "EACCES") return;
    throw error;
  }
  try {
    await folder.sync();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!["EINVAL", "EPERM", "ENOTSUP", "EBADF"].includes(code ?? "")) throw error;
  } finally {
    await folder.close();
  }
}
