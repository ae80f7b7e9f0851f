import type { ByteSource } from "./byte-source.ts";

const PROBABILITY_BITS = 11;
const MOVE_BITS = 5;
const HALF = (1 << PROBABILITY_BITS) / 2;

/** Probabilities that the next bit is 0; each is 1/2 at the start. */
export function probabilities(count: number): Uint16Array {
  return new Uint16Array(count).fill(HALF);
}

/** The arithmetic decoder of LZMA: each bit narrows a range by the probability that was learned for it. */
export class RangeDecoder {
  readonly #bytes: ByteSource;
  #range = 0;
  #code = 0;
  #endAt = 0;

  constructor(bytes: ByteSource) {
    this.#bytes = bytes;
  }

  /** @param packedBytes length of the chunk */
  begin(packedBytes: number): void {
    this.#endAt = this.#bytes.taken + packedBytes;
    if (this.#next() !== 0) throw new RangeError("a chunk begins with a wrong byte");
    this.#range = 0xffffffff;
    this.#code = 0;
    for (let byte = 0; byte < 4; byte += 1) this.#code = ((this.#code << 8) | this.#next()) >>> 0;
  }

  /** Throws a RangeError unless the chunk was used up exactly. */
  end(): void {
    if (this.#range < 0x1000000) this.#widen();
    if (this.#code !== 0 || this.#bytes.taken !== this.#endAt) throw new RangeError("a chunk has a wrong length");
  }

  /** Decodes one bit, and adapts its probability `model[at]`. */
  bit(model: Uint16Array, at: number): number {
    if (this.#range < 0x1000000) this.#widen();
    const probability = model[at] ?? HALF;
    const bound = (this.#range >>> PROBABILITY_BITS) * probability;
    if (this.#code < bound) {
      this.#range = bound;
      model[at] = probability + (((1 << PROBABILITY_BITS) - probability) >>> MOVE_BITS);
      return 0;
    }
    this.#range -= bound;
    this.#code -= bound;
    model[at] = probability - (probability >>> MOVE_BITS);
    return 1;
  }

  /** Decodes a number, highest bit first. Its probabilities are a binary tree in `model`, from index `start` on. */
  tree(model: Uint16Array, start: number, bits: number): number {
    let node = 1;
    for (let left = bits; left > 0; left -= 1) node = (node << 1) | this.bit(model, start + node);
    return node - (1 << bits);
  }

  /** As `tree`, lowest bit first. */
  reverseTree(model: Uint16Array, start: number, bits: number): number {
    let node = 1;
    let value = 0;
    for (let at = 0; at < bits; at += 1) {
      const bit = this.bit(model, start + node);
      node = (node << 1) | bit;
      value |= bit << at;
    }
    return value;
  }

  /** Decodes a number without learned probabilities: 0 and 1 are equally likely for each bit. */
  direct(bits: number): number {
    let value = 0;
    for (let left = bits; left > 0; left -= 1) {
      if (this.#range < 0x1000000) this.#widen();
      this.#range >>>= 1;
      const bit = this.#code >= this.#range ? 1 : 0;
      if (bit === 1) this.#code -= this.#range;
      value = ((value << 1) | bit) >>> 0;
    }
    return value;
  }

  #widen(): void {
    this.#range = (this.#range << 8) >>> 0;
    this.#code = ((this.#code << 8) | this.#next()) >>> 0;
  }

  #next(): number {
    if (this.#bytes.taken >= this.#endAt) throw new RangeError("a chunk has a wrong length");
    return this.#bytes.next();
  }
}
