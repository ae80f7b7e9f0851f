import { writeFile } from "node:fs/promises";
import { DownloadError, messageOf } from "../../errors.ts";
import { sha256Of } from "../../files/file-hash.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import type { FileStorage, FileToPut } from "./file-storage.ts";
import type { FileDamage, FileStore, FileToStore } from "./file-store.ts";
import { PartFiles } from "./part-files.ts";

/** The storage of a caller as a file store. Partial files are in a local folder. */
export class CustomStore implements FileStore {
  readonly name: string;
  readonly parts: PartFiles;
  readonly isContentAddressed = true;
  readonly #storage: FileStorage;

  constructor(storage: FileStorage, partsFolder: string) {
    this.name = storage.name;
    this.parts = new PartFiles(partsFolder);
    this.#storage = storage;
  }

  prepare(): Promise<void> {
    return this.parts.prepare();
  }

  isPresent(): boolean {
    return true;
  }

  async has({ path, bytes }: Pick<StoredFile, "path" | "bytes">): Promise<boolean> {
    return (await this.#bytesOf(path)) === bytes;
  }

  /** Only the size is compared: a storage need not be readable. */
  async damageOf({ path, bytes }: Pick<StoredFile, "path" | "bytes">): Promise<FileDamage | undefined> {
    const stored = await this.#bytesOf(path);
    if (stored === undefined) return "missing";
    return stored === bytes ? undefined : "changed";
  }

  async availablePath(target: string): Promise<string> {
    return target;
  }

  async store({ part, path, sha256, mediaType }: FileToStore): Promise<void> {
    const bytes = this.parts.bytesOf(part);
    const file = this.parts.pathOf(part);
    if (bytes > 0) await this.#put(path, { file, bytes, sha256, mediaType });
    // After a crash the partial file may be gone, and the file stored.
    else if ((await this.#bytesOf(path)) === undefined)
      throw new DownloadError(`${file} is gone, and ${path} is not in ${this.name}`);
    await this.parts.delete(part);
  }

  async displace(): Promise<void> {
    // Different bytes have different names.
  }

  setAside(path: string): Promise<void> {
    return this.deleteFile(path);
  }

  deleteFile(path: string): Promise<void> {
    return this.#use(`delete ${path} from`, storage => storage.delete(path));
  }

  async writeText(path: string, text: string, part: string): Promise<void> {
    const file = this.parts.pathOf(part);
    await writeFile(file, text);
    try {
      const facts = { bytes: Buffer.byteLength(text), sha256: sha256Of(text), mediaType: "text/plain; charset=utf-8" };
      await this.#put(path, { file, ...facts });
    } finally {
      await this.parts.delete(part);
    }
  }

  locationOf(path: string): string {
    return this.#storage.locationOf(path);
  }

  stop(): void {
    // The caller decides how long a file may take.
  }

  close(): void {
    // The caller closes its storage.
  }

  #put(path: string, file: FileToPut): Promise<void> {
    return this.#use(`store ${path} in`, storage => storage.put(path, file));
  }

  #bytesOf(path: string): Promise<number | undefined> {
    return this.#use(`find ${path} in`, storage => storage.bytesOf(path));
  }

  /** A DownloadError ends the run: an error of the storage must not count as a failure of the host that sent the file. */
  async #use<Result>(action: string, use: (storage: FileStorage) => Promise<Result>): Promise<Result> {
    try {
      return await use(this.#storage);
    } catch (error) {
      throw new DownloadError(`cannot ${action} ${this.name}: ${messageOf(error)}`, { cause: error });
    }
  }
}
