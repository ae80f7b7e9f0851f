import type { ByteSource } from "./byte-source.ts";

/** Bits of a stream, the highest bit of each byte first. */
export class BitReader {
  readonly #bytes: ByteSource;
  /** The lowest `#heldBits` bits are those that were read from the source and not taken yet. */
  #held = 0;
  #heldBits = 0;

  constructor(bytes: ByteSource) {
    this.#bytes = bytes;
  }

  bit(): number {
    if (this.#heldBits === 0) {
      this.#held = this.#bytes.next();
      this.#heldBits = 8;
    }
    this.#heldBits -= 1;
    return (this.#held >>> this.#heldBits) & 1;
  }

  /** An unsigned number of up to 24 bits. */
  bits(count: number): number {
    while (this.#heldBits < count) {
      // At most 23 bits are held, and 8 are added.
      this.#held = ((this.#held & ((1 << this.#heldBits) - 1)) << 8) | this.#bytes.next();
      this.#heldBits += 8;
    }
    this.#heldBits -= count;
    const value = this.#held >>> this.#heldBits;
    return count === 0 ? 0 : value & ((1 << count) - 1);
  }

  /** An unsigned number of 32 bits. */
  word(): number {
    return ((this.bits(16) << 16) | this.bits(16)) >>> 0;
  }

  /** Drops the rest of the current byte. */
  align(): void {
    this.#heldBits -= this.#heldBits % 8;
  }
}
