import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { type FileSample, HEAD_BYTES, TAIL_BYTES } from "./file-check.ts";

/** A whole file, closed and safe on the disk. */
export interface ReceivedFile extends FileSample {
  readonly sha256: string;
  readonly md5: string;
}

/** A file that is being received: what comes is written, hashed and looked at in one go, so that it is read once. */
export class PartFile {
  readonly #handle: FileHandle;
  readonly #sha256: Hash = createHash("sha256");
  /** Asked for by services that are older than the doubts about it; it guards against accidents. */
  readonly #md5: Hash = createHash("md5");
  #head: Uint8Array = new Uint8Array();
  #tail: Uint8Array = new Uint8Array();
  #bytes = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** An empty one, whatever was there. */
  static async create(path: string): Promise<PartFile> {
    return new PartFile(await open(path, "w", 0o644));
  }

  /** One that is there, to be gone on with. */
  static async resume(path: string): Promise<PartFile> {
    const part = new PartFile(await open(path, "r+"));
    try {
      for await (const chunk of part.#handle.createReadStream({ autoClose: false, start: 0 })) part.#update(chunk);
      return part;
    } catch (error) {
      await part.close();
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  async append(chunk: Uint8Array): Promise<void> {
    let written = 0;
    while (written < chunk.length) {
      const position = this.#bytes + written;
      written += (await this.#handle.write(chunk, written, chunk.length - written, position)).bytesWritten;
    }
    this.#update(chunk);
  }

  /** Brings it safely to the disk, and closes it. */
  async finish(): Promise<ReceivedFile> {
    try {
      await this.#handle.sync();
    } finally {
      await this.close();
    }
    return {
      head: this.#head,
      tail: this.#tail,
      bytes: this.#bytes,
      sha256: this.#sha256.digest("hex"),
      md5: this.#md5.digest("hex"),
    };
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  #update(chunk: Uint8Array): void {
    this.#sha256.update(chunk);
    this.#md5.update(chunk);
    this.#bytes += chunk.length;
    if (this.#head.length < HEAD_BYTES) {
      this.#head = Buffer.concat([this.#head, chunk.subarray(0, HEAD_BYTES - this.#head.length)]);
    }
    this.#tail =
      chunk.length >= TAIL_BYTES
        ? Uint8Array.from(chunk.subarray(-TAIL_BYTES))
        : Uint8Array.from(Buffer.concat([this.#tail, chunk]).subarray(-TAIL_BYTES));
  }
}
