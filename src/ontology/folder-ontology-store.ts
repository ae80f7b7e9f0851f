import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, DownloadError } from "../errors.ts";
import { moveDurably, writeAtomically } from "../files/atomic-file.ts";
import { errnoOf, ifExists } from "../files/disk-errors.ts";
import { hashFile } from "../files/file-hash.ts";
import { makeFolder } from "../files/make-folder.ts";
import { formatManifest, type OntologyManifest, parseManifest } from "./ontology-manifest.ts";
import { MANIFEST, newestFirst, type OntologyStore, type StoredVersion } from "./ontology-store.ts";
import { idProblem } from "./sources-schema.ts";
import { folderOf, secondFolderOf } from "./version-label.ts";
import { WorkFolder } from "./work-folder.ts";

/** A store in a folder. A version appears by one rename. */
export class FolderOntologyStore implements OntologyStore {
  readonly root: string;
  readonly work: WorkFolder;

  constructor(root: string) {
    this.root = root;
    this.work = new WorkFolder(root);
  }

  async prepare(): Promise<void> {
    makeFolder(this.work.path);
  }

  async ids(): Promise<readonly string[]> {
    const entries = await foldersIn(this.root);
    // A store on a volume of its own has folders of the system beside it, such as `lost+found`.
    return entries.filter(name => idProblem(name) === undefined).sort();
  }

  async versions(id: string): Promise<readonly StoredVersion[]> {
    const folders = await foldersIn(join(this.root, id));
    return newestFirst(await Promise.all(folders.map(folder => this.#version(id, folder))));
  }

  async foldersWithoutManifest(id: string): Promise<readonly string[]> {
    const folders = await foldersIn(join(this.root, id));
    const versions = await Promise.all(folders.map(folder => this.#version(id, folder)));
    return folders.filter((_, index) => versions[index] === undefined).sort();
  }

  /** The version in this folder; undefined if the folder has no valid manifest. */
  async #version(id: string, folder: string): Promise<StoredVersion | undefined> {
    const text = await textOf(join(this.root, id, folder, MANIFEST));
    const manifest = text === undefined ? undefined : parseManifest(text);
    return manifest && { id, folder, manifest, path: join(this.root, id, folder, manifest.file) };
  }

  async findByHash(id: string, sha256: string): Promise<StoredVersion | undefined> {
    for (const version of await this.versions(id)) {
      if (version.manifest.sha256 === sha256 && (await sizeOf(version.path)) === version.manifest.bytes) return version;
    }
    return undefined;
  }

  async isIntact(version: StoredVersion, signal?: AbortSignal): Promise<boolean> {
    return (await this.hashOf(version, signal)) === version.manifest.sha256;
  }

  hashOf({ path }: StoredVersion, signal?: AbortSignal): Promise<string | undefined> {
    return hashFile(path, signal);
  }

  async localFile({ path }: StoredVersion): Promise<string> {
    return path;
  }

  /** If the version exists with other bytes, the folder name gets a suffix from the hash. */
  async add(file: string, manifest: OntologyManifest): Promise<StoredVersion> {
    const { id, version, sha256 } = manifest;
    const name = folderOf(version);
    const second = secondFolderOf(version, sha256);
    for (const folder of [name, second]) {
      const existing = await this.#version(id, folder);
      // Compare the bytes, not the manifest: a stored file that was damaged on disk is replaced.
      if (existing !== undefined && (await hashFile(existing.path)) === sha256) {
        await rm(file, { force: true });
        const stored = { ...manifest, file: existing.manifest.file };
        await writeAtomically(join(this.root, id, folder, MANIFEST), formatManifest(stored));
        return { ...existing, manifest: stored };
      }
      if (existing !== undefined && existing.manifest.sha256 !== sha256) continue;
      await this.#moveIntoPlace(file, manifest, folder);
      return { id, folder, manifest, path: join(this.root, id, folder, manifest.file) };
    }
    throw new DownloadError(
      `cannot store version ${version} of ${id}: the folders ${name} and ${second} exist with other content`,
    );
  }

  async updateManifest(version: StoredVersion, changes: Partial<OntologyManifest>): Promise<StoredVersion> {
    const manifest = { ...version.manifest, ...changes };
    await writeAtomically(join(this.root, version.id, version.folder, MANIFEST), formatManifest(manifest));
    return { ...version, manifest };
  }

  /** Moves the folder away before it deletes the files, so that other processes never see an incomplete version. */
  async remove({ id, folder }: StoredVersion): Promise<void> {
    const trash = join(this.#removedPath(id), randomUUID());
    await moveDurably(join(this.root, id, folder), trash);
    await rm(trash, { recursive: true, force: true });
  }

  async removeLeftovers(id: string): Promise<void> {
    const paths = [this.#draftPath(id), this.#removedPath(id), ...this.work.leftoverPaths(id)];
    for (const path of paths) await rm(path, { recursive: true, force: true });
  }

  writeText(name: string, text: string): Promise<void> {
    return writeAtomically(join(this.root, name), text);
  }

  [Symbol.dispose](): void {
    // A folder has no connection to close.
  }

  /** One draft per id is enough: the lock of the id admits one process at a time. */
  #draftPath(id: string): string {
    return join(this.work.path, "drafts", id);
  }

  #removedPath(id: string): string {
    return join(this.work.path, "removed", id);
  }

  async #moveIntoPlace(file: string, manifest: OntologyManifest, folder: string): Promise<void> {
    const draft = this.#draftPath(manifest.id);
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { recursive: true });
    try {
      await rename(file, join(draft, manifest.file));
      await writeAtomically(join(draft, MANIFEST), formatManifest(manifest));
      const target = join(this.root, manifest.id, folder);
      // `rename` fails on a folder that is not empty. The folder has no valid manifest or a damaged file, see `add`.
      await rm(target, { recursive: true, force: true });
      await moveDurably(draft, target);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }
}

/** Rejects with a ConfigError if the path is a file: the name of the store may be that of another file. */
async function foldersIn(path: string): Promise<readonly string[]> {
  const reading = readdir(path, { withFileTypes: true }).catch(cause => {
    if (errnoOf(cause) !== "ENOTDIR") throw cause;
    const message = "is not a folder; expected the folder of an ontology store";
    throw new ConfigError([{ where: path, path: "", message }], { cause });
  });
  const entries = (await ifExists(reading)) ?? [];
  return entries.filter(entry => entry.isDirectory()).map(({ name }) => name);
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await ifExists(stat(path)))?.size;
}
