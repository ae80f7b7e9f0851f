import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { ifExists, withDiskErrors } from "./disk-errors.ts";
import type { ResumePoint } from "./range-decision.ts";
import type { ResumeRecord, ResumeRecordStore } from "./resume-record.ts";

const FILE_MODE = 0o644;

/**
 * A file that is being received. Its resume record is saved before the first byte and deleted before the file is
 * emptied, so bytes without a record are never resumed. Throws a DownloadError if the disk cannot be written.
 */
export class PartialFile {
  readonly path: string;
  readonly #recordStore: ResumeRecordStore;
  #record: ResumeRecord | undefined;
  #bytes: number;
  /** The file has bytes of another URL. They stay unless a file of this URL begins. */
  #isOfOtherUrl: boolean;
  /** Opened at the first write: a response that is not the file creates none. */
  #file: FileHandle | undefined;
  /** The hash of all bytes so far. Undefined until the bytes of an earlier download have been read again. */
  #hash: Hash | undefined;

  private constructor(
    path: string,
    recordStore: ResumeRecordStore,
    found: ResumeRecord | "other-url" | undefined,
    bytes: number,
  ) {
    this.path = path;
    this.#recordStore = recordStore;
    this.#record = found === "other-url" ? undefined : found;
    this.#isOfOtherUrl = found === "other-url";
    this.#bytes = bytes;
    this.#hash = bytes === 0 ? createHash("sha256") : undefined;
  }

  /** Continues the partial file of an earlier download of the same URL, or starts empty. One caller at a time per path. */
  static async open(path: string, recordStore: ResumeRecordStore): Promise<PartialFile> {
    const found = await recordStore.load();
    const isOwn = found !== undefined && found !== "other-url";
    const size = isOwn ? ((await ifExists(stat(path)))?.size ?? 0) : 0;
    return new PartialFile(path, recordStore, found, size);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Undefined if the download must start from the beginning. */
  get resumePoint(): ResumePoint | undefined {
    return this.#bytes === 0 || this.#record === undefined ? undefined : { bytes: this.#bytes, ...this.#record };
  }

  /** Empties the file. Without a record, the bytes that follow cannot be resumed. */
  async restart(record: ResumeRecord | undefined): Promise<void> {
    await this.#recordStore.delete();
    this.#isOfOtherUrl = false;
    await this.close();
    this.#file = await withDiskErrors(this.path, async () => {
      await mkdir(dirname(this.path), { recursive: true });
      return open(this.path, "w", FILE_MODE);
    });
    this.#bytes = 0;
    this.#hash = createHash("sha256");
    this.#record = record;
    if (record !== undefined) await this.#recordStore.save(record);
  }

  async append(chunk: Uint8Array): Promise<void> {
    await withDiskErrors(this.path, async () => {
      const hash = await this.#hashOfBytes();
      const file = await this.#openFile();
      for (let at = 0; at < chunk.length; ) {
        const { bytesWritten } = await file.write(chunk, at, chunk.length - at, this.#bytes);
        hash.update(chunk.subarray(at, at + bytesWritten));
        at += bytesWritten;
        this.#bytes += bytesWritten;
      }
    });
  }

  /**
   * Flushes the file to the disk. File and record stay until the caller has moved the file. If the process dies before
   * that, the next process finds the complete file and transfers nothing, if the server had announced its length.
   */
  async finish(): Promise<{ readonly bytes: number; readonly sha256: string }> {
    return withDiskErrors(this.path, async () => {
      const hash = await this.#hashOfBytes();
      await (await this.#openFile()).sync();
      return { bytes: this.#bytes, sha256: hash.digest("hex") };
    });
  }

  /** Deletes the file and its record, unless both are of another URL. */
  async discard(): Promise<void> {
    await this.close();
    if (!this.#isOfOtherUrl) await removePartialFile(this.path, this.#recordStore);
    this.#bytes = 0;
    this.#hash = createHash("sha256");
    this.#record = undefined;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #openFile(): Promise<FileHandle> {
    this.#file ??= await open(this.path, "r+");
    return this.#file;
  }

  async #hashOfBytes(): Promise<Hash> {
    if (this.#hash !== undefined) return this.#hash;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(this.path, { end: this.#bytes - 1 })) hash.update(chunk);
    this.#hash = hash;
    return hash;
  }
}

/** Deletes the record first, so that it never describes other bytes. */
export async function removePartialFile(path: string, recordStore: ResumeRecordStore): Promise<void> {
  await recordStore.delete();
  await withDiskErrors(path, () => rm(path, { force: true }));
}
