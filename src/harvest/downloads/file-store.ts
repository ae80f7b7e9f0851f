import { constants, statSync } from "node:fs";
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { moveToNewPath } from "../../files/atomic-file.ts";
import { ifExists } from "../../files/disk-errors.ts";
import { hashFile } from "../../files/file-hash.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import { numberedPath } from "./layout.ts";

/** Partial files. On the same file system as the finished files, so that no bytes are copied. */
const PARTS_FOLDER = ".parts";

/** The output folder of a run: partial files in `.parts`, finished files beside it. */
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

  /** 0 if the partial file does not exist. */
  partBytes(file: string): number {
    return statSync(this.partPath(file), { throwIfNoEntry: false })?.size ?? 0;
  }

  async deletePart(file: string): Promise<void> {
    await rm(this.partPath(file), { force: true });
  }

  /** Whether the file exists with the recorded size. Its bytes are not read: that would take hours for a large folder. */
  has({ path, bytes }: Pick<StoredFile, "path" | "bytes">): boolean {
    return statSync(join(this.folder, path), { throwIfNoEntry: false })?.size === bytes;
  }

  /**
   * The first free path for these bytes: the target, or a numbered one. A file with the same bytes counts as free.
   * @param first 2 to leave the target out
   */
  async availablePath(target: string, sha256: string, first = 1): Promise<string> {
    for (let number = first; ; number += 1) {
      const path = number === 1 ? target : numberedPath(target, number);
      const found = statSync(join(this.folder, path), { throwIfNoEntry: false });
      if (found === undefined || (found.isFile() && (await hashFile(join(this.folder, path))) === sha256)) return path;
    }
  }

  /** Moves a complete partial file to its path, and never overwrites another file: see `moveToNewPath`. */
  async moveIntoPlace(part: string, path: string, sha256: string): Promise<void> {
    await moveToNewPath(this.partPath(part), join(this.folder, path), sha256);
  }

  /** Moves a finished file to a free path. Nothing happens if it has been moved already. */
  async displace(from: string, to: string, sha256: string): Promise<void> {
    const source = join(this.folder, from);
    const isThere = statSync(source, { throwIfNoEntry: false })?.isFile() === true;
    if (isThere && (await hashFile(source)) === sha256) await moveToNewPath(source, join(this.folder, to), sha256);
  }

  /** The names of all partial files. */
  partFiles(): Promise<readonly string[]> {
    return readdir(join(this.folder, PARTS_FOLDER));
  }

  /** The bytes that a partial file has now, under another name: the process that began it may still write to it. */
  async copyPart(from: string, to: string): Promise<void> {
    await ifExists(copyFile(this.partPath(from), this.partPath(to), constants.COPYFILE_FICLONE));
  }

  async deleteFile(path: string): Promise<void> {
    await rm(join(this.folder, path), { force: true });
  }
}
