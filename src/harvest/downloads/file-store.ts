import { statSync } from "node:fs";
import { link, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DownloadError } from "../../errors.ts";
import { syncFolder } from "../../files/atomic-file.ts";
import { hashFile } from "../../files/file-hash.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import { numberedPath } from "./layout.ts";

/** Where files lie that have not come whole. On the same file system as where they go, so that a rename is enough. */
const PARTS_FOLDER = ".parts";

/** The folder of a run: parts on one side, whole files on the other, and the one step between them. */
export class FileStore {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async prepare(): Promise<void> {
    await mkdir(join(this.folder, PARTS_FOLDER), { recursive: true });
  }

  partPath(file: string): string {
    return join(this.folder, PARTS_FOLDER, file);
  }

  /** 0 for one that is not there. */
  partBytes(file: string): number {
    return statSync(this.partPath(file), { throwIfNoEntry: false })?.size ?? 0;
  }

  async deletePart(file: string): Promise<void> {
    await rm(this.partPath(file), { force: true });
  }

  /** Whether it lies where it should. Its size is looked at, its bytes are not: that would take hours of a large folder. */
  has({ path, bytes }: Pick<StoredFile, "path" | "bytes">): boolean {
    return statSync(join(this.folder, path), { throwIfNoEntry: false })?.size === bytes;
  }

  /** A name for these bytes at which nothing else lies: the target, or one beside it. */
  async availablePath(target: string, sha256: string): Promise<string> {
    for (let number = 1; ; number += 1) {
      const path = number === 1 ? target : numberedPath(target, number);
      const found = statSync(join(this.folder, path), { throwIfNoEntry: false });
      if (found === undefined || (found.isFile() && (await hashFile(join(this.folder, path))) === sha256)) return path;
    }
  }

  /**
   * Puts a whole part in its place. May be done again after a crash: a file that has the bytes already is as good.
   * Nothing is ever overwritten; where somebody else's file has come there meanwhile it is a DownloadError.
   */
  async moveIntoPlace(part: string, path: string, sha256: string): Promise<void> {
    const from = this.partPath(part);
    const to = join(this.folder, path);
    await mkdir(dirname(to), { recursive: true });
    try {
      await link(from, to);
    } catch (error) {
      const code = codeOf(error);
      if (code === "EEXIST" || code === "ENOENT") {
        if ((await hashFile(to)) !== sha256) throw new DownloadError(`${to} is in the way of a new file`);
      } else if (code !== undefined && NO_LINKS.has(code)) await rename(from, to);
      else throw error;
    }
    await syncFolder(dirname(to));
    await rm(from, { force: true });
  }

  /** Removes parts that nobody knows of: their process died before it could say what they are. */
  async removeUnknownParts(known: ReadonlySet<string>): Promise<void> {
    for (const file of await readdir(join(this.folder, PARTS_FOLDER)))
      if (!known.has(file)) await this.deletePart(file);
  }
}

/** What file systems say that have no links. */
const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
