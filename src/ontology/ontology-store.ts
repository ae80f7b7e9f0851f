import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { moveDurably, writeAtomically } from "../files/atomic-file.ts";
import { errnoOf, ifExists } from "../files/disk-errors.ts";
import { hashFile } from "../files/file-hash.ts";
import { folderOf } from "./checks/file-version.ts";
import { formatManifest, type OntologyManifest, parseManifest } from "./ontology-manifest.ts";

/** A version that lies in the store. */
export interface StoredVersion {
  readonly id: string;
  /** The name of its folder. */
  readonly folder: string;
  readonly manifest: OntologyManifest;
  /** Absolute. */
  readonly path: string;
}

/** What is ours and no ontology: halves of files, drafts, locks. */
const INTERNAL_FOLDER = ".ontofetch";
const MANIFEST = "manifest.json";

/**
 * Files as `<id>/<version>/<id>.<ending>`, each with its manifest. A version appears whole, by one rename, or not at all;
 * what lies there is never written again.
 */
export class OntologyStore {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Where a file gathers while it comes. Another format is another file. */
  partialPath(id: string): string {
    return join(this.root, INTERNAL_FOLDER, "partial", `${id}.part`);
  }

  lockPath(name: string): string {
    return join(this.root, INTERNAL_FOLDER, "locks", `${name}.lock`);
  }

  internalPath(name: string): string {
    return join(this.root, INTERNAL_FOLDER, name);
  }

  async ids(): Promise<readonly string[]> {
    const entries = await foldersIn(this.root);
    return entries.filter(name => !name.startsWith(".")).sort();
  }

  /** The newest first. What is no version, a folder without a manifest say, is left out. */
  async versions(id: string): Promise<readonly StoredVersion[]> {
    const folders = await foldersIn(join(this.root, id));
    const found = await Promise.all(folders.map(folder => this.version(id, folder)));
    return found
      .filter(version => version !== undefined)
      .sort((a, b) => compare(b.manifest.fetched_at, a.manifest.fetched_at) || compare(b.folder, a.folder));
  }

  async version(id: string, folder: string): Promise<StoredVersion | undefined> {
    const text = await textOf(join(this.root, id, folder, MANIFEST));
    const manifest = text === undefined ? undefined : parseManifest(text);
    return manifest && { id, folder, manifest, path: join(this.root, id, folder, manifest.file) };
  }

  /** The stored version with these bytes, if its file is there in its whole length. */
  async findByHash(id: string, sha256: string): Promise<StoredVersion | undefined> {
    for (const version of await this.versions(id)) {
      if (version.manifest.sha256 === sha256 && (await sizeOf(version.path)) === version.manifest.bytes) return version;
    }
    return undefined;
  }

  /**
   * Puts a finished file in its place. The same bytes under the same version are not stored twice; other bytes under a
   * version that is there already get a folder that says so.
   */
  async add(file: string, manifest: OntologyManifest): Promise<StoredVersion> {
    const { id, version, sha256 } = manifest;
    const name = folderOf(version);
    for (const folder of [name, `${name}+${sha256.slice(0, 8)}`]) {
      const there = await this.version(id, folder);
      // By its bytes: a file that was damaged where it lies is replaced.
      if (there !== undefined && (await hashFile(there.path)) === sha256) {
        await rm(file, { force: true });
        await writeAtomically(
          join(this.root, id, folder, MANIFEST),
          formatManifest({ ...manifest, file: there.manifest.file }),
        );
        return { ...there, manifest };
      }
      if (there !== undefined && there.manifest.sha256 !== sha256) continue;
      await this.#moveIntoPlace(file, manifest, folder);
      return { id, folder, manifest, path: join(this.root, id, folder, manifest.file) };
    }
    throw new Error(`${id} ${version} is there already with other bytes, twice`);
  }

  /** Notes when a version was last found to be current. */
  async updateManifest(version: StoredVersion, changes: Partial<OntologyManifest>): Promise<StoredVersion> {
    const manifest = { ...version.manifest, ...changes };
    await writeAtomically(join(this.root, version.id, version.folder, MANIFEST), formatManifest(manifest));
    return { ...version, manifest };
  }

  /** Out of sight first, by one rename, so that nobody finds half a version. */
  async remove({ id, folder }: StoredVersion): Promise<void> {
    const trash = this.internalPath(join("removed", randomUUID()));
    await moveDurably(join(this.root, id, folder), trash);
    await rm(trash, { recursive: true, force: true });
  }

  /** What a process that was killed has left of a version that it was about to place. For who holds the id's lock. */
  async removeDraft(id: string): Promise<void> {
    await rm(this.#draftPath(id), { recursive: true, force: true });
  }

  /** One for each id: only one process at a time is at it. */
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
      // A folder without a manifest is nothing that we have made, or what is left of it.
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
