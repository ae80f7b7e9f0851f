import type { ByteSource } from "./byte-source.ts";

/** Bits of a stream, the highest bit of each byte first. */
export class BitReader {
  readonly #bytes: ByteSource;
  #held = 0;
  #count = 0;

  constructor(bytes: ByteSource) {
    this.#bytes = bytes;
  }

  bit(): number {
    if (this.#count === 0) {
      this.#held = this.#bytes.next();
      this.#count = 8;
    }
    this.#count -= 1;
    return (this.#held >>> this.#count) & 1;
  }

  /** An unsigned number of up to 24 bits. */
  bits(count: number): number {
    while (this.#count < count) {
      // At most 23 bits are held, and 8 are added.
      this.#held = ((this.#held & ((1 << this.#count) - 1)) << 8) | this.#bytes.next();
      this.#count += 8;
    }
    this.#count -= count;
    const value = this.#held >>> this.#count;
    return count === 0 ? 0 : value & ((1 << count) - 1);
  }

  /** An unsigned number of 32 bits. */
  word(): number {
    return ((this.bits(16) << 16) | this.bits(16)) >>> 0;
  }

  /** Drops the rest of the current byte. */
  align(): void {
    this.#count -= this.#count % 8;
  }
}
