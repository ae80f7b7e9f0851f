import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError, DownloadError, messageOf } from "../errors.ts";
import { ifExists } from "../files/disk-errors.ts";
import { makeFolder } from "../files/make-folder.ts";
import { ABANDONED_AFTER_MS, S3Folder } from "../files/s3/s3-folder.ts";
import type { Time } from "../time/time.ts";
import { formatManifest, type OntologyManifest, parseManifest } from "./ontology-manifest.ts";
import { MANIFEST, newestFirst, type OntologyStore, type StoredVersion } from "./ontology-store.ts";
import { runPool } from "./pull-pool.ts";
import { idProblem } from "./sources-schema.ts";
import { s3FolderDigits, s3FolderOf } from "./version-label.ts";
import { WorkFolder } from "./work-folder.ts";

/** How many manifests are read at a time. */
const READS_MAX = 8;
const DRAFT_SUFFIX = ".tmp";
const MEDIA_TYPE = "application/octet-stream";

/**
 * A store in a bucket of an S3 service. S3 has neither renames nor locks. So the name of a version's folder contains the
 * hash of its file, and two machines never write different bytes to one name. A version exists if its manifest exists.
 * The manifest is written after the file and deleted before it.
 */
export class S3OntologyStore implements OntologyStore {
  readonly root: string;
  readonly work: WorkFolder;
  readonly #remote: S3Folder;
  readonly #time: Time;

  private constructor(root: string, remote: S3Folder, time: Time) {
    this.root = root;
    this.work = new WorkFolder(root);
    this.#remote = remote;
    this.#time = time;
  }

  static async open(url: string, time: Time): Promise<S3OntologyStore> {
    return new S3OntologyStore(url, await S3Folder.open(url, "store"), time);
  }

  async prepare(): Promise<void> {
    makeFolder(this.work.path);
    try {
      await this.#remote.check();
      await this.#remote.abortAbandoned(this.#time.wallMs(), isOwnPath);
    } catch (cause) {
      const message = `cannot use ${this.root}: ${messageOf(cause)}`;
      throw new ConfigError([{ where: "store", path: "", message }], { cause });
    }
  }

  async ids(): Promise<readonly string[]> {
    // Other programs may use the bucket too, so a folder can have any name and any content.
    const named = (await this.#remote.folders("")).filter(name => idProblem(name) === undefined);
    const ids = await runPool(named, READS_MAX, async id => {
      const folders = await this.#remote.folders(`${id}/`);
      return folders.some(folder => s3FolderDigits(folder) !== undefined) ? id : undefined;
    });
    return ids.filter(id => id !== undefined).sort();
  }

  async versions(id: string): Promise<readonly StoredVersion[]> {
    const folders = [...(await this.#folders(id))].filter(([, { hasManifest }]) => hasManifest).map(([name]) => name);
    return newestFirst(await runPool(folders, READS_MAX, folder => this.#version(id, folder)));
  }

  async foldersWithoutManifest(id: string): Promise<readonly string[]> {
    const folders = [...(await this.#folders(id))];
    const valid = new Set((await this.versions(id)).map(({ folder }) => folder));
    // A young file without a manifest may belong to a pull of another machine, which writes the manifest later.
    const abandonedBeforeMs = this.#time.wallMs() - ABANDONED_AFTER_MS;
    return folders
      .filter(([name, { modifiedMs }]) => !valid.has(name) && modifiedMs < abandonedBeforeMs)
      .map(([name]) => name)
      .sort();
  }

  async findByHash(id: string, sha256: string): Promise<StoredVersion | undefined> {
    for (const version of await this.versions(id))
      if (version.manifest.sha256 === sha256 && (await this.isIntact(version))) return version;
    return undefined;
  }

  async isIntact(version: StoredVersion): Promise<boolean> {
    const { bytes, sha256 } = version.manifest;
    const found = await this.#remote.head(filePath(version));
    return found?.bytes === bytes && found.sha256 === sha256;
  }

  hashOf(version: StoredVersion, signal?: AbortSignal): Promise<string | undefined> {
    return this.#remote.hashOf(filePath(version), signal);
  }

  async localFile(version: StoredVersion, signal?: AbortSignal): Promise<string> {
    const { bytes, sha256, file } = version.manifest;
    const path = join(this.#copiesPath(version.id), sha256, file);
    if ((await ifExists(stat(path)))?.size === bytes) return path;
    await mkdir(dirname(path), { recursive: true });
    const draft = `${path}.${randomUUID().slice(0, 8)}${DRAFT_SUFFIX}`;
    try {
      const found = await this.#remote.download(filePath(version), draft, signal);
      if (found === undefined) throw new DownloadError(`${version.path} is missing`);
      if (found !== sha256)
        throw new DownloadError(`${version.path} has changed: sha256 is ${found}, the manifest has ${sha256}`);
      await rename(draft, path);
    } finally {
      await rm(draft, { force: true });
    }
    return path;
  }

  async add(file: string, manifest: OntologyManifest, signal?: AbortSignal): Promise<StoredVersion> {
    const { id, sha256, bytes } = manifest;
    const version = this.#storedVersion(id, s3FolderOf(manifest.version, sha256), manifest);
    if (!(await this.isIntact(version)))
      await this.#remote.upload(filePath(version), { file, bytes, sha256, mediaType: MEDIA_TYPE }, signal);
    await this.#writeManifest(version);
    await rm(file, { force: true });
    return version;
  }

  async updateManifest(version: StoredVersion, changes: Partial<OntologyManifest>): Promise<StoredVersion> {
    const changed = { ...version, manifest: { ...version.manifest, ...changes } };
    await this.#writeManifest(changed);
    return changed;
  }

  async remove(version: StoredVersion): Promise<void> {
    await this.#remote.delete(`${version.id}/${version.folder}/${MANIFEST}`);
    await this.#remote.delete(filePath(version));
  }

  /** Also removes, on this machine, copies of versions that are gone and drafts of copies that were never completed. */
  async removeLeftovers(id: string): Promise<void> {
    for (const path of this.work.leftoverPaths(id)) await rm(path, { force: true });
    for (const folder of await this.foldersWithoutManifest(id))
      for await (const { path } of this.#remote.list(`${id}/${folder}/`))
        if (isOwnPath(path) && (await this.#isOwnObject(path, folder))) await this.#remote.delete(path);
    const stored = new Set((await this.versions(id)).map(({ manifest }) => manifest.sha256));
    for (const sha256 of (await ifExists(readdir(this.#copiesPath(id)))) ?? []) {
      const folder = join(this.#copiesPath(id), sha256);
      if (stored.has(sha256)) await this.#removeAbandonedDrafts(folder);
      else await rm(folder, { recursive: true, force: true });
    }
  }

  /** An object of another program has no hash in its metadata. A manifest has none either. */
  async #isOwnObject(path: string, folder: string): Promise<boolean> {
    if (path.endsWith(`/${MANIFEST}`)) return true;
    const sha256 = (await this.#remote.head(path))?.sha256 ?? "";
    return sha256.startsWith(s3FolderDigits(folder) ?? "-");
  }

  /** A younger draft may belong to a process that is still downloading. */
  async #removeAbandonedDrafts(folder: string): Promise<void> {
    const abandonedBeforeMs = this.#time.wallMs() - ABANDONED_AFTER_MS;
    for (const name of (await ifExists(readdir(folder))) ?? []) {
      const path = join(folder, name);
      const modifiedMs = name.endsWith(DRAFT_SUFFIX) ? (await ifExists(stat(path)))?.mtimeMs : undefined;
      if (modifiedMs !== undefined && modifiedMs < abandonedBeforeMs) await rm(path, { force: true });
    }
  }

  writeText(name: string, text: string): Promise<void> {
    return this.#remote.writeText(name, text);
  }

  [Symbol.dispose](): void {
    this.#remote.close();
  }

  /** Each folder of a version of an ontology, with the time of its newest object. */
  async #folders(
    id: string,
  ): Promise<ReadonlyMap<string, { readonly hasManifest: boolean; readonly modifiedMs: number }>> {
    const folders = new Map<string, { readonly hasManifest: boolean; readonly modifiedMs: number }>();
    for await (const { path, modifiedMs } of this.#remote.list(`${id}/`)) {
      const [, folder = "", name] = path.split("/");
      if (!isOwnPath(path)) continue;
      const known = folders.get(folder);
      folders.set(folder, {
        hasManifest: name === MANIFEST || known?.hasManifest === true,
        modifiedMs: Math.max(modifiedMs, known?.modifiedMs ?? 0),
      });
    }
    return folders;
  }

  async #version(id: string, folder: string): Promise<StoredVersion | undefined> {
    const text = await this.#remote.readText(`${id}/${folder}/${MANIFEST}`);
    const manifest = text === undefined ? undefined : parseManifest(text);
    return manifest && this.#storedVersion(id, folder, manifest);
  }

  #storedVersion(id: string, folder: string, manifest: OntologyManifest): StoredVersion {
    return { id, folder, manifest, path: this.#remote.locationOf(filePath({ id, folder, manifest })) };
  }

  #writeManifest({ id, folder, manifest }: StoredVersion): Promise<void> {
    return this.#remote.writeText(`${id}/${folder}/${MANIFEST}`, formatManifest(manifest));
  }

  #copiesPath(id: string): string {
    return join(this.work.path, "copies", id);
  }
}

/** Whether a path has the form `<id>/<folder of a version>/<name>`. Other programs may use the bucket too. */
function isOwnPath(path: string): boolean {
  const [id = "", folder = "", name = "", ...deeper] = path.split("/");
  return idProblem(id) === undefined && s3FolderDigits(folder) !== undefined && name !== "" && deeper.length === 0;
}

function filePath({ id, folder, manifest }: Pick<StoredVersion, "id" | "folder" | "manifest">): string {
  return `${id}/${folder}/${manifest.file}`;
}
