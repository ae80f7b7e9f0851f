import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { writeAtomically } from "./atomic-file.ts";
import type { ResumePoint } from "./range-decision.ts";

/** What stands beside the bytes, so that another process can go on with them. No URL: it may hold a key. */
interface PartialFileRecord {
  readonly version: 1;
  readonly url_sha256: string;
  readonly validator: string;
  readonly total_bytes: number | null;
}

/**
 * A file that is still arriving: its bytes at `path`, and beside them, in `<path>.json`, whose bytes they are. The note
 * is written before the first byte and removed before the file is emptied: bytes without one are nobody's.
 */
export class PartialFile {
  readonly path: string;
  readonly #urlHash: string;
  readonly #file: FileHandle;
  #hash: Hash | undefined = createHash("sha256");
  #bytes = 0;
  #validator: string | undefined;
  #totalBytes: number | undefined;

  private constructor(path: string, urlHash: string, file: FileHandle) {
    this.path = path;
    this.#urlHash = urlHash;
    this.#file = file;
  }

  /** Finds what an earlier attempt has left for the same URL, or starts empty. One process at a time, please. */
  static async open(path: string, url: string): Promise<PartialFile> {
    await mkdir(dirname(path), { recursive: true });
    const urlHash = createHash("sha256").update(url).digest("hex");
    const record = await readRecord(recordPathOf(path));
    const file = await open(path, "a+");
    const partial = new PartialFile(path, urlHash, file);
    try {
      const { size } = await file.stat();
      if (record?.url_sha256 !== urlHash) await partial.restart();
      else {
        partial.#bytes = size;
        partial.#validator = record.validator;
        partial.#totalBytes = record.total_bytes ?? undefined;
        // Read again only when it turns out that they are of use.
        partial.#hash = size === 0 ? createHash("sha256") : undefined;
      }
      return partial;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What may be gone on with; undefined when nothing may. */
  get resumePoint(): ResumePoint | undefined {
    if (this.#bytes === 0 || this.#validator === undefined) return undefined;
    return { bytes: this.#bytes, validator: this.#validator, totalBytes: this.#totalBytes };
  }

  /** Empty again, for bytes that this validator stands for; without one they cannot be gone on with. */
  async restart(validator?: string, totalBytes?: number): Promise<void> {
    await rm(recordPathOf(this.path), { force: true });
    await this.#file.truncate(0);
    this.#bytes = 0;
    this.#hash = createHash("sha256");
    this.#validator = validator;
    this.#totalBytes = totalBytes;
    if (validator === undefined) return;
    const record: PartialFileRecord = {
      version: 1,
      url_sha256: this.#urlHash,
      validator,
      total_bytes: totalBytes ?? null,
    };
    await writeAtomically(recordPathOf(this.path), `${JSON.stringify(record)}\n`);
  }

  async append(chunk: Uint8Array): Promise<void> {
    const hash = await this.#hashOfBytes();
    for (let at = 0; at < chunk.length; ) {
      const { bytesWritten } = await this.#file.write(chunk, at);
      hash.update(chunk.subarray(at, at + bytesWritten));
      at += bytesWritten;
      this.#bytes += bytesWritten;
    }
  }

  /** The hash of all of it, once it is on the disk. The bytes stay where they are; the note goes. */
  async finish(): Promise<string> {
    const hash = await this.#hashOfBytes();
    await this.#file.sync();
    await rm(recordPathOf(this.path), { force: true });
    return hash.digest("hex");
  }

  async discard(): Promise<void> {
    await removePartialFile(this.path);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #hashOfBytes(): Promise<Hash> {
    if (this.#hash !== undefined) return this.#hash;
    const hash = createHash("sha256");
    if (this.#bytes > 0)
      for await (const chunk of createReadStream(this.path, { end: this.#bytes - 1 })) hash.update(chunk);
    this.#hash = hash;
    return hash;
  }
}

/** The bytes and their note. */
export async function removePartialFile(path: string): Promise<void> {
  await rm(recordPathOf(path), { force: true });
  await rm(path, { force: true });
}

function recordPathOf(path: string): string {
  return `${path}.json`;
}

/** A note that cannot be read stands for nothing. */
async function readRecord(path: string): Promise<PartialFileRecord | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const record: Partial<PartialFileRecord> | null = JSON.parse(text);
    const isRecord =
      record?.version === 1 && typeof record.url_sha256 === "string" && typeof record.validator === "string";
    return isRecord ? (record as PartialFileRecord) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
