import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../errors.ts";
import { moveDurably, writeAtomically } from "../files/atomic-file.ts";
import { errnoOf, ifExists } from "../files/disk-errors.ts";
import { hashFile } from "../files/file-hash.ts";
import { formatManifest, type OntologyManifest, parseManifest } from "./ontology-manifest.ts";
import { folderOf } from "./version-label.ts";

/** One version of an ontology in the store folder. */
export interface StoredVersion {
  /** The id in `sources.yaml`. */
  readonly id: string;
  /** The name of the version's folder inside the folder of the ontology. */
  readonly folder: string;
  /** The content of `manifest.json`. */
  readonly manifest: OntologyManifest;
  /** Absolute path of the ontology file. */
  readonly path: string;
}

/** Holds partial files, drafts, locks, and versions that are being removed. No id begins with a dot. */
const INTERNAL_FOLDER = ".ontofetch";
const MANIFEST = "manifest.json";

/**
 * Ontology files as `<id>/<version>/<id>.<extension>`, each with its manifest. A version appears complete, by one
 * rename, or not at all, and its file is never modified afterwards.
 */
export class OntologyStore {
  /** Absolute path of the store folder. */
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** The file that an unfinished download of this ontology is written to. */
  partialPath(id: string): string {
    return join(this.root, INTERNAL_FOLDER, "partial", `${id}.part`);
  }

  /** The file that a process locks while it changes an ontology (`name` is its id) or the lockfile. */
  lockPath(name: string): string {
    return join(this.root, INTERNAL_FOLDER, "locks", `${name}.lock`);
  }

  /** A path in the folder of internal files. */
  internalPath(name: string): string {
    return join(this.root, INTERNAL_FOLDER, name);
  }

  /** The ids of all ontologies that have a folder, sorted. */
  async ids(): Promise<readonly string[]> {
    const entries = await foldersIn(this.root);
    return entries.filter(name => !name.startsWith(".")).sort();
  }

  /** All versions of an ontology, the newest first. A folder without a valid manifest is left out. */
  async versions(id: string): Promise<readonly StoredVersion[]> {
    const folders = await foldersIn(join(this.root, id));
    const found = await Promise.all(folders.map(folder => this.version(id, folder)));
    return found
      .filter(version => version !== undefined)
      .sort((a, b) => compare(b.manifest.fetched_at, a.manifest.fetched_at) || compare(b.folder, a.folder));
  }

  /** The names of the folders of an ontology that have no valid manifest, sorted. */
  async foldersWithoutManifest(id: string): Promise<readonly string[]> {
    const folders = await foldersIn(join(this.root, id));
    const versions = await Promise.all(folders.map(folder => this.version(id, folder)));
    return folders.filter((_, index) => versions[index] === undefined).sort();
  }

  /** The version in this folder; undefined if the folder has no valid manifest. */
  async version(id: string, folder: string): Promise<StoredVersion | undefined> {
    const text = await textOf(join(this.root, id, folder, MANIFEST));
    const manifest = text === undefined ? undefined : parseManifest(text);
    return manifest && { id, folder, manifest, path: join(this.root, id, folder, manifest.file) };
  }

  /** The stored version whose manifest has this hash and whose file has the length in the manifest. */
  async findByHash(id: string, sha256: string): Promise<StoredVersion | undefined> {
    for (const version of await this.versions(id)) {
      if (version.manifest.sha256 === sha256 && (await sizeOf(version.path)) === version.manifest.bytes) return version;
    }
    return undefined;
  }

  /**
   * Moves a finished file to its folder. Equal bytes under the same version are stored once. If the version exists with
   * other bytes, the folder name gets a suffix from the hash.
   */
  async add(file: string, manifest: OntologyManifest): Promise<StoredVersion> {
    const { id, version, sha256 } = manifest;
    const name = folderOf(version);
    for (const folder of [name, `${name}+${sha256.slice(0, 8)}`]) {
      const existing = await this.version(id, folder);
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
    const names = `${name} and ${name}+${sha256.slice(0, 8)}`;
    throw new DownloadError(`cannot store version ${version} of ${id}: the folders ${names} exist with other content`);
  }

  /** Writes changed fields of the manifest, such as the time of the last check. */
  async updateManifest(version: StoredVersion, changes: Partial<OntologyManifest>): Promise<StoredVersion> {
    const manifest = { ...version.manifest, ...changes };
    await writeAtomically(join(this.root, version.id, version.folder, MANIFEST), formatManifest(manifest));
    return { ...version, manifest };
  }

  /** Renames the folder before it deletes the files, so that other processes never see half a version. */
  async remove({ id, folder }: StoredVersion): Promise<void> {
    const trash = this.internalPath(join("removed", randomUUID()));
    await moveDurably(join(this.root, id, folder), trash);
    await rm(trash, { recursive: true, force: true });
  }

  /** Deletes the draft that a killed process has left. The caller must hold the lock of the id. */
  async removeDraft(id: string): Promise<void> {
    await rm(this.#draftPath(id), { recursive: true, force: true });
  }

  /** One draft per id is enough: the lock of the id admits one process at a time. */
  #draftPath(id: string): string {
    return this.internalPath(join("drafts", id));
  }

  async #moveIntoPlace(file: string, manifest: OntologyManifest, folder: string): Promise<void> {
    const draft = this.#draftPath(manifest.id);
    await this.removeDraft(manifest.id);
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

async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = (await ifExists(readdir(path, { withFileTypes: true }))) ?? [];
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

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
