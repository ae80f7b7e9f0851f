import { readSync } from "node:fs";

const CHUNK_BYTES = 65_536;

/**
 * The bytes of an open file, one after the other. They are read synchronously, because a decoder asks for single bits.
 * The file was written a moment ago, so the system has it in memory.
 */
export class ByteSource {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(CHUNK_BYTES);
  #at = 0;
  #end = 0;
  /** How many bytes were taken so far. */
  taken = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#end && !this.#fill();
  }

  /** Throws a RangeError at the end of the file. */
  next(): number {
    if (this.isAtEnd) throw new RangeError("unexpected end of the file");
    this.taken += 1;
    return this.#buffer[this.#at++] ?? 0;
  }

  /** The next byte, without taking it; -1 at the end. */
  peek(): number {
    return this.isAtEnd ? -1 : (this.#buffer[this.#at] ?? 0);
  }

  /** The next bytes, copied. */
  take(count: number): Buffer {
    const bytes = Buffer.alloc(count);
    for (let done = 0; done < count; ) {
      if (this.isAtEnd) throw new RangeError("unexpected end of the file");
      const copied = this.#buffer.copy(bytes, done, this.#at, Math.min(this.#end, this.#at + count - done));
      this.#at += copied;
      done += copied;
    }
    this.taken += count;
    return bytes;
  }

  #fill(): boolean {
    this.#at = 0;
    this.#end = readSync(this.#fd, this.#buffer, 0, CHUNK_BYTES, null);
    return this.#end > 0;
  }
}
