import { textHash } from "../../core/text/text-hash.ts";

/** Pseudo-random numbers (mulberry32): the same name gives the same numbers on every machine. */
export class SeededRandom {
  #state: number;

  /** The parts of the name are the seed. Generators with different names are independent. */
  constructor(...name: readonly (string | number)[]) {
    this.#state = Number.parseInt(textHash(name.join("/")).slice(0, 8), 16);
  }

  /** 32 bits, as an unsigned integer. */
  bits(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    const half = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    const whole = half ^ (half + Math.imul(half ^ (half >>> 7), half | 61));
    return (whole ^ (whole >>> 14)) >>> 0;
  }

  /** An integer from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + (this.bits() % (to - from + 1));
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.bits() % items.length] ?? items[0];
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map(item => ({ item, rank: this.bits() }))
      .sort((one, other) => one.rank - other.rank)
      .map(({ item }) => item);
  }
}
