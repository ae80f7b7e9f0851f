import { randomBytes } from "node:crypto";

/**
 * A set of strings with one byte of flags each, held as 53-bit hashes: 9 bytes for each slot instead of about 100 for a
 * string in a Set. Among a million strings, the probability that any two collide is 1 in 18,000.
 */
export class HashTable {
  #hashes = new Float64Array(INITIAL_SLOTS);
  #flags = new Uint8Array(INITIAL_SLOTS);
  #size = 0;

  /** How many strings are held. */
  get size(): number {
    return this.#size;
  }

  /**
   * Sets flags of a string and adds the string if it is new. Returns the flags that were not set before, 0 if all were.
   * When the table is full, new strings are not held and count as new every time.
   */
  add(text: string, flags: number): number {
    const slot = this.#slotOf(text);
    const old = this.#flags[slot] ?? 0;
    if (old === 0 && this.#hashes[slot] === 0) {
      if (this.#size >= SIZE_MAX) return flags;
      this.#hashes[slot] = this.#lastHash;
      this.#size += 1;
    }
    this.#flags[slot] = old | flags;
    if (this.#size * 4 > this.#hashes.length * 3) this.#grow();
    return flags & ~old;
  }

  /** The flags of a string; 0 if it is not held. */
  flagsOf(text: string): number {
    return this.#flags[this.#slotOf(text)] ?? 0;
  }

  /** The string of the last `#slotOf`: statements about one subject follow each other. */
  #lastText = "";
  /** Its hash, and the low 32 bits. Fields, because a returned pair would be an allocation per call. */
  #lastHash = 0;
  #lastLow = 0;

  #slotOf(text: string): number {
    if (this.#lastHash === 0 || text !== this.#lastText) this.#hash(text);
    return this.#find(this.#lastHash, this.#lastLow);
  }

  #hash(text: string): void {
    // Two hashes in the manner of FNV-1a, joined to 53 bits.
    let low = LOW_SEED;
    let high = HIGH_SEED;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      low = Math.imul(low ^ code, 0x01000193);
      high = Math.imul(high ^ code, 0x85ebca6b);
      high ^= high >>> 13;
    }
    // 0 marks a free slot.
    this.#lastHash = (high >>> 11) * 0x100000000 + (low >>> 0) || 1;
    this.#lastLow = low >>> 0;
    this.#lastText = text;
  }

  /** The slot with this hash, or the free slot for it. @param start the low 32 bits of the hash */
  #find(hash: number, start: number): number {
    const mask = this.#hashes.length - 1;
    let slot = (start ^ (start >>> 15)) & mask;
    while (this.#hashes[slot] !== 0 && this.#hashes[slot] !== hash) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const hashes = this.#hashes;
    const flags = this.#flags;
    this.#hashes = new Float64Array(hashes.length * 2);
    this.#flags = new Uint8Array(hashes.length * 2);
    for (let at = 0; at < hashes.length; at += 1) {
      const hash = hashes[at] ?? 0;
      if (hash === 0) continue;
      const slot = this.#find(hash, hash >>> 0);
      this.#hashes[slot] = hash;
      this.#flags[slot] = flags[at] ?? 0;
    }
  }
}

/** Random, so that the author of a file cannot choose strings that collide. */
const SEEDS = randomBytes(8);
const LOW_SEED = SEEDS.readInt32LE(0);
const HIGH_SEED = SEEDS.readInt32LE(4);
const INITIAL_SLOTS = 1024;
/** 72 MB of slots. The largest ontologies have 3 million terms. */
const SIZE_MAX = 6_000_000;
