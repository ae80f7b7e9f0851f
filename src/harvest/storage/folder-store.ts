import { existsSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { moveDurably, moveToNewPath, writeAtomically } from "../../files/atomic-file.ts";
import { hashFile } from "../../files/file-hash.ts";
import { numberedPath } from "../downloads/layout.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import type { FileDamage, FileStore, FileToStore } from "./file-store.ts";
import { PartFiles } from "./part-files.ts";

/** Partial files. On the same file system as the finished files, so that no bytes are copied. */
export const PARTS_FOLDER = ".parts";

/** The output folder of a run: partial files in `.parts`, finished files beside it. */
export class FolderStore implements FileStore {
  readonly name: string;
  readonly parts: PartFiles;
  readonly isContentAddressed = false;

  constructor(folder: string) {
    this.name = folder;
    this.parts = new PartFiles(join(folder, PARTS_FOLDER));
  }

  prepare(): Promise<void> {
    return this.parts.prepare();
  }

  isPresent({ path, bytes }: Pick<StoredFile, "path" | "bytes">): boolean {
    return statSync(this.locationOf(path), { throwIfNoEntry: false })?.size === bytes;
  }

  async has(file: Pick<StoredFile, "path" | "bytes">): Promise<boolean> {
    return this.isPresent(file);
  }

  async damageOf(file: Pick<StoredFile, "path" | "bytes" | "sha256">): Promise<FileDamage | undefined> {
    const path = this.locationOf(file.path);
    if (!existsSync(path)) return "missing";
    return this.isPresent(file) && (await hashFile(path)) === file.sha256 ? undefined : "changed";
  }

  async availablePath(
    target: string,
    { sha256, bytes }: Pick<StoredFile, "sha256" | "bytes">,
    firstNumber = 1,
  ): Promise<string> {
    for (let number = firstNumber; ; number += 1) {
      const path = number === 1 ? target : numberedPath(target, number);
      const found = statSync(this.locationOf(path), { throwIfNoEntry: false });
      if (found === undefined) return path;
      // Many works may have one target, such as with {year}.{ext}: the size is compared first, so that few files are read.
      const mayBeSame = found.isFile() && found.size === bytes;
      if (mayBeSame && (await hashFile(this.locationOf(path))) === sha256) return path;
    }
  }

  async store({ part, path, sha256 }: FileToStore): Promise<void> {
    await moveToNewPath(this.parts.pathOf(part), this.locationOf(path), sha256);
  }

  async displace(from: string, to: string, sha256: string): Promise<void> {
    const source = this.locationOf(from);
    const isFile = statSync(source, { throwIfNoEntry: false })?.isFile() === true;
    if (isFile && (await hashFile(source)) === sha256) await moveToNewPath(source, this.locationOf(to), sha256);
  }

  async setAside(path: string): Promise<void> {
    const file = this.locationOf(path);
    let target = `${file}.changed`;
    for (let number = 2; existsSync(target); number += 1) target = `${file}.changed-${number}`;
    await moveDurably(file, target);
  }

  async deleteFile(path: string): Promise<void> {
    await rm(this.locationOf(path), { force: true });
  }

  async writeText(path: string, text: string, part: string): Promise<void> {
    await writeAtomically(this.locationOf(path), text, this.parts.pathOf(part));
  }

  locationOf(path: string): string {
    return join(this.name, path);
  }

  stop(): void {
    // A move is too short to be aborted.
  }

  close(): void {
    // A folder has nothing to close.
  }
}
