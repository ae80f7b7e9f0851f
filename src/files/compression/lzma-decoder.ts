import type { ByteSource } from "./byte-source.ts";
import { probabilities, RangeDecoder } from "./range-decoder.ts";

const STATES = 12;
/** States below it: the last symbol was a literal. */
const LITERAL_STATES = 7;
const POSITION_STATES = 16;
const MATCH_LENGTH_MIN = 2;
const DISTANCE_SLOTS = 64;
const ALIGN_BITS = 4;

/** The probabilities of the length of a match. */
class LengthModel {
  readonly #choice = probabilities(2);
  readonly #low = probabilities(POSITION_STATES * 8);
  readonly #middle = probabilities(POSITION_STATES * 8);
  readonly #high = probabilities(256);

  read(range: RangeDecoder, positionState: number): number {
    if (range.bit(this.#choice, 0) === 0) return range.tree(this.#low, positionState * 8, 3);
    if (range.bit(this.#choice, 1) === 0) return 8 + range.tree(this.#middle, positionState * 8, 3);
    return 16 + range.tree(this.#high, 0, 8);
  }
}

/** The probabilities and distances that the decoder has learned since the last reset. */
class Model {
  readonly literals: Uint16Array;
  readonly isMatch = probabilities(STATES * POSITION_STATES);
  readonly isRepeat = probabilities(STATES);
  readonly isRepeat0 = probabilities(STATES);
  readonly isRepeat0Long = probabilities(STATES * POSITION_STATES);
  readonly isRepeat1 = probabilities(STATES);
  readonly isRepeat2 = probabilities(STATES);
  readonly slots = probabilities(4 * DISTANCE_SLOTS);
  readonly distances = probabilities(128);
  readonly align = probabilities(1 << ALIGN_BITS);
  readonly matchLengths = new LengthModel();
  readonly repeatLengths = new LengthModel();
  /** Distances of the last four matches, the latest first, less 1. */
  repeats: readonly [number, number, number, number] = [0, 0, 0, 0];
  state = 0;

  constructor(literalBits: number) {
    this.literals = probabilities(0x300 << literalBits);
  }
}

/** Decodes the chunks of LZMA data, which share a dictionary: the bytes that were decoded last. */
export class LzmaDecoder {
  readonly #bytes: ByteSource;
  readonly #range: RangeDecoder;
  readonly #dictionary: Buffer;
  /** The place of the next byte in the dictionary. */
  #place = 0;
  /** How many bytes were decoded since the dictionary was emptied. */
  #position = 0;
  #literalContextBits = 0;
  #literalPositionMask = 0;
  #positionMask = 0;
  #model = new Model(0);
  #output: Buffer = Buffer.alloc(0);
  #filled = 0;

  /** @param dictionary memory of the dictionary; its content is not read before it is written */
  constructor(bytes: ByteSource, dictionary: Buffer) {
    this.#bytes = bytes;
    this.#range = new RangeDecoder(bytes);
    this.#dictionary = dictionary;
  }

  resetDictionary(): void {
    this.#place = 0;
    this.#position = 0;
  }

  /** @param property (pb * 5 + lp) * 9 + lc */
  setProperties(property: number): void {
    const contextBits = property % 9;
    const positionBits = Math.floor(property / 9) % 5;
    const matchBits = Math.floor(property / 45);
    if (matchBits > 4 || contextBits + positionBits > 4) throw new RangeError("impossible properties");
    this.#literalContextBits = contextBits;
    this.#literalPositionMask = (1 << positionBits) - 1;
    this.#positionMask = (1 << matchBits) - 1;
  }

  resetState(): void {
    this.#model = new Model(this.#literalContextBits + bitLength(this.#literalPositionMask));
  }

  copyChunk(length: number): Buffer {
    const bytes = this.#bytes.take(length);
    this.#begin(length);
    for (const byte of bytes) this.#put(byte);
    return this.#output;
  }

  unpackChunk(length: number, packedBytes: number): Buffer {
    const range = this.#range;
    this.#begin(length);
    range.begin(packedBytes);
    while (this.#filled < length) this.#unpackSymbol();
    range.end();
    return this.#output;
  }

  #begin(length: number): void {
    this.#output = Buffer.allocUnsafe(length);
    this.#filled = 0;
  }

  #unpackSymbol(): void {
    const range = this.#range;
    const model = this.#model;
    const { state } = model;
    const positionState = this.#position & this.#positionMask;
    if (range.bit(model.isMatch, state * POSITION_STATES + positionState) === 0) {
      this.#put(this.#literal());
      model.state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      return;
    }
    if (range.bit(model.isRepeat, state) === 0) {
      const length = model.matchLengths.read(range, positionState) + MATCH_LENGTH_MIN;
      const [first, second, third] = model.repeats;
      model.repeats = [this.#distance(length), first, second, third];
      model.state = state < LITERAL_STATES ? 7 : 10;
      this.#copy(length);
    } else if (this.#isShortRepeat(positionState)) {
      model.state = state < LITERAL_STATES ? 9 : 11;
      this.#copy(1);
    } else {
      const length = model.repeatLengths.read(range, positionState) + MATCH_LENGTH_MIN;
      model.state = state < LITERAL_STATES ? 8 : 11;
      this.#copy(length);
    }
  }

  /** Moves the distance that is repeated to the front. True when a single byte is repeated. */
  #isShortRepeat(positionState: number): boolean {
    const range = this.#range;
    const model = this.#model;
    const { state } = model;
    const [first, second, third, fourth] = model.repeats;
    if (range.bit(model.isRepeat0, state) === 0)
      return range.bit(model.isRepeat0Long, state * POSITION_STATES + positionState) === 0;
    if (range.bit(model.isRepeat1, state) === 0) model.repeats = [second, first, third, fourth];
    else if (range.bit(model.isRepeat2, state) === 0) model.repeats = [third, first, second, fourth];
    else model.repeats = [fourth, first, second, third];
    return false;
  }

  /** Decodes one byte. */
  #literal(): number {
    const range = this.#range;
    const { literals, state, repeats } = this.#model;
    const previous = this.#position === 0 ? 0 : this.#byteAt(0);
    const context =
      ((this.#position & this.#literalPositionMask) << this.#literalContextBits) +
      (previous >>> (8 - this.#literalContextBits));
    const start = context * 0x300;
    let symbol = 1;
    if (state >= LITERAL_STATES) {
      // After a match, the byte that would have continued it is unlikely: it selects other probabilities.
      let expected = this.#byteAt(this.#checked(repeats[0]));
      while (symbol < 0x100) {
        const wanted = (expected >>> 7) & 1;
        expected <<= 1;
        const bit = range.bit(literals, start + ((1 + wanted) << 8) + symbol);
        symbol = (symbol << 1) | bit;
        if (bit !== wanted) break;
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | range.bit(literals, start + symbol);
    return symbol & 0xff;
  }

  /** Decodes the distance of a match of this length, less 1. */
  #distance(length: number): number {
    const range = this.#range;
    const model = this.#model;
    const lengthState = Math.min(length - MATCH_LENGTH_MIN, 3);
    const slot = range.tree(model.slots, lengthState * DISTANCE_SLOTS, 6);
    if (slot < 4) return slot;
    const bits = (slot >>> 1) - 1;
    const base = ((2 | (slot & 1)) << bits) >>> 0;
    if (slot < 14) return base + range.reverseTree(model.distances, base - slot, bits);
    const high = range.direct(bits - ALIGN_BITS) * (1 << ALIGN_BITS);
    return base + high + range.reverseTree(model.align, 0, ALIGN_BITS);
  }

  #copy(length: number): void {
    const distance = this.#checked(this.#model.repeats[0]);
    if (this.#filled + length > this.#output.length) throw new RangeError("a match is longer than its chunk");
    for (let left = length; left > 0; left -= 1) this.#put(this.#byteAt(distance));
  }

  /** Throws a RangeError when the distance leads to before the first byte, or out of the dictionary. */
  #checked(distance: number): number {
    if (distance >= this.#position || distance >= this.#dictionary.length)
      throw new RangeError("a match begins before the data");
    return distance;
  }

  /** The byte that was decoded `distance` bytes before the last one. */
  #byteAt(distance: number): number {
    const at = this.#place - 1 - distance;
    return this.#dictionary[at < 0 ? at + this.#dictionary.length : at] ?? 0;
  }

  #put(byte: number): void {
    this.#dictionary[this.#place] = byte;
    this.#place = this.#place + 1 === this.#dictionary.length ? 0 : this.#place + 1;
    this.#position += 1;
    this.#output[this.#filled++] = byte;
  }
}

function bitLength(mask: number): number {
  return 32 - Math.clz32(mask);
}
