import { constants, statSync } from "node:fs";
import { copyFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "../../files/disk-errors.ts";
import { makeFolder } from "../../files/make-folder.ts";

/** A folder with the partial files of downloads. */
export class PartFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async prepare(): Promise<void> {
    makeFolder(this.folder);
  }

  pathOf(file: string): string {
    return join(this.folder, file);
  }

  /** 0 if the partial file does not exist. */
  bytesOf(file: string): number {
    return statSync(this.pathOf(file), { throwIfNoEntry: false })?.size ?? 0;
  }

  async delete(file: string): Promise<void> {
    await rm(this.pathOf(file), { force: true });
  }

  /** The names of all partial files. */
  list(): Promise<readonly string[]> {
    return readdir(this.folder);
  }

  /**
   * Copies the bytes that a partial file has now; does nothing if there is no such file. The file is not renamed,
   * because the process that began it may still write to it.
   */
  async copy(from: string, to: string): Promise<void> {
    await ifExists(copyFile(this.pathOf(from), this.pathOf(to), constants.COPYFILE_FICLONE));
  }
}
