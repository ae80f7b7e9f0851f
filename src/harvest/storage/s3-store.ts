import { homedir } from "node:os";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";
import { sha256Of } from "../../files/file-hash.ts";
import { S3Folder, type S3Object } from "../../files/s3/s3-folder.ts";
import type { Time } from "../../time/time.ts";
import { isContentAddress } from "../downloads/layout.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import type { FileDamage, FileStore, FileToStore } from "./file-store.ts";
import { PartFiles } from "./part-files.ts";

/** Uploads at a time. Each has one part in memory. */
const UPLOADS_MAX = 4;

/** @param out `s3://bucket/prefix` */
export async function openS3Store(out: string, manifest: string, time: Time): Promise<FileStore> {
  return new S3Store(await S3Folder.open(out, "--out"), partsFolderFor(out, manifest), time);
}

/** The folder of all partial files: on this machine, because a file is complete and checked before it is uploaded. */
export function partsRoot(): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "docstokg", "parts");
}

function partsFolderFor(out: string, manifest: string): string {
  return join(partsRoot(), sha256Of(`${out} ${manifest}`).slice(0, 24));
}

/**
 * A bucket of an S3 service. Names come from the hashes of files, so that an upload can be repeated and two processes
 * that store the same bytes do not disturb each other.
 */
class S3Store implements FileStore {
  readonly name: string;
  readonly parts: PartFiles;
  readonly isContentAddressed = true;
  readonly #remote: S3Folder;
  readonly #time: Time;
  /** The last upload of each slot. An upload starts when the one before it in its slot has ended. */
  readonly #uploads: Promise<unknown>[] = Array.from({ length: UPLOADS_MAX }, () => Promise.resolve());
  #nextUpload = 0;

  constructor(remote: S3Folder, partsFolder: string, time: Time) {
    this.#time = time;
    this.#remote = remote;
    this.name = remote.name;
    this.parts = new PartFiles(partsFolder);
  }

  async prepare(): Promise<void> {
    await this.parts.prepare();
    await this.#remote.check();
    await this.#remote.abortAbandoned(this.#time.wallMs(), isContentAddress);
  }

  isPresent(): boolean {
    return true;
  }

  async has({ path, bytes }: Pick<StoredFile, "path" | "bytes">): Promise<boolean> {
    return (await this.#remote.head(path))?.bytes === bytes;
  }

  async damageOf({ path, sha256 }: Pick<StoredFile, "path" | "sha256">): Promise<FileDamage | undefined> {
    const found = await this.#remote.hashOf(path);
    if (found === undefined) return "missing";
    return found === sha256 ? undefined : "changed";
  }

  async availablePath(target: string): Promise<string> {
    return target;
  }

  store(file: FileToStore): Promise<void> {
    const slot = this.#nextUpload;
    this.#nextUpload = (slot + 1) % UPLOADS_MAX;
    const stored = (this.#uploads[slot] ?? Promise.resolve()).then(() => this.#store(file));
    this.#uploads[slot] = stored.catch(() => undefined);
    return stored;
  }

  async displace(): Promise<void> {
    // Different bytes have different names.
  }

  async setAside(path: string): Promise<void> {
    let target = `${path}.changed`;
    for (let number = 2; (await this.#remote.head(target)) !== undefined; number += 1)
      target = `${path}.changed-${number}`;
    await this.#remote.copy(path, target);
    await this.#remote.delete(path);
  }

  deleteFile(path: string): Promise<void> {
    return this.#remote.delete(path);
  }

  writeText(path: string, text: string): Promise<void> {
    return this.#remote.writeText(path, text);
  }

  locationOf(path: string): string {
    return this.#remote.locationOf(path);
  }

  stop(): void {
    this.#remote.stop();
  }

  close(): void {
    this.#remote.close();
  }

  async #store({ part, path, sha256, mediaType }: FileToStore): Promise<void> {
    const bytes = this.parts.bytesOf(part);
    const known = await this.#remote.headIfAllowed(path);
    // After a crash the partial file may be gone, and the object complete.
    if (known !== undefined && isSame(known, bytes, sha256)) return this.parts.delete(part);
    const file = this.parts.pathOf(part);
    if (bytes === 0) throw new DownloadError(`${file} is gone, and ${path} is not in ${this.name}`);
    await this.#remote.upload(path, { file, bytes, sha256, mediaType });
    await this.parts.delete(part);
  }
}

/** @param bytes 0 if the partial file is gone */
function isSame(known: S3Object, bytes: number, sha256: string): boolean {
  return (bytes === 0 || known.bytes === bytes) && (known.sha256 ?? sha256) === sha256;
}
