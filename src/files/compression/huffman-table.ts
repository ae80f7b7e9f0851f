import type { BitReader } from "./bit-reader.ts";

/** The longest code of bzip2. */
const LENGTH_MAX = 20;

/** A canonical prefix code: the codes of one length are consecutive numbers, in the order of their symbols. */
export class HuffmanTable {
  readonly #shortest: number;
  /** For each length: the largest code, and what to add to a code to get the index of its symbol. */
  readonly #largest = new Int32Array(LENGTH_MAX + 2).fill(-1);
  readonly #offset = new Int32Array(LENGTH_MAX + 2);
  readonly #symbols: Uint16Array;

  /** @param lengths of the codes, by symbol: 1 to 20 */
  constructor(lengths: Uint8Array) {
    const counts = new Int32Array(LENGTH_MAX + 2);
    for (const length of lengths) counts[length] = (counts[length] ?? 0) + 1;
    this.#symbols = new Uint16Array(lengths.length);
    let index = 0;
    let code = 0;
    this.#shortest = lengths.reduce((shortest, length) => Math.min(shortest, length), LENGTH_MAX);
    for (let length = 1; length <= LENGTH_MAX; length += 1) {
      this.#offset[length] = index - code;
      for (let symbol = 0; symbol < lengths.length; symbol += 1)
        if (lengths[symbol] === length) this.#symbols[index++] = symbol;
      code += counts[length] ?? 0;
      if ((counts[length] ?? 0) > 0) this.#largest[length] = code - 1;
      if (code > 1 << length) throw new RangeError("impossible prefix code");
      code <<= 1;
    }
  }

  /** Reads the code of one symbol. */
  read(bits: BitReader): number {
    let code = bits.bits(this.#shortest);
    for (let length = this.#shortest; length <= LENGTH_MAX; length += 1) {
      if (code <= (this.#largest[length] ?? -1)) {
        const symbol = this.#symbols[code + (this.#offset[length] ?? 0)];
        if (symbol !== undefined) return symbol;
        break;
      }
      code = (code << 1) | bits.bit();
    }
    throw new RangeError("unknown prefix code");
  }
}
