/** So many different values are kept as they are. */
const EXACT_MAX = 65_536;
/** Beyond that each stands for those within a hundredth of it: 2 % from one bin to the next. */
const GROWTH = Math.log(1.02);
/** Nothing that is measured here is shorter. */
const LEAST = 1e-3;

/**
 * Numbers from 0 on, of which percentiles are wanted. Exact for up to 65,536 values other than 0, whose number does not
 * matter; beyond that within one per cent, in a few hundred bins. Count, sum and extremes are exact always.
 */
export class Distribution {
  #zeros = 0;
  /** Until there are too many. */
  #values: number[] | undefined = [];
  #isSorted = true;
  #bins: Map<number, number> | undefined;
  count = 0;
  sum = 0;
  max = 0;

  add(value: number): void {
    this.count += 1;
    if (!(value > 0)) {
      this.#zeros += 1;
      return;
    }
    this.sum += value;
    if (value > this.max) this.max = value;
    if (this.#values === undefined) {
      this.#addToBin(value);
      return;
    }
    this.#values.push(value);
    this.#isSorted = false;
    if (this.#values.length > EXACT_MAX) this.#collapse(this.#values);
  }

  get isExact(): boolean {
    return this.#values !== undefined;
  }

  /** By nearest rank: the least value that at least this share of all values does not exceed. 0 when there are none. */
  percentile(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.count));
    if (rank <= this.#zeros || this.count === 0) return 0;
    let at = rank - this.#zeros;
    if (this.#values !== undefined) return this.#sorted(this.#values)[at - 1] ?? this.max;
    for (const [bin, held] of this.#sortedBins()) {
      at -= held;
      if (at <= 0) return Math.min(this.max, middleOf(bin));
    }
    return this.max;
  }

  /** The sum of all values, each counted for no more than `bound`. */
  sumUpTo(bound: number): number {
    let sum = 0;
    if (this.#values !== undefined) for (const value of this.#values) sum += Math.min(value, bound);
    else for (const [bin, held] of this.#sortedBins()) sum += held * Math.min(middleOf(bin), bound);
    return sum;
  }

  #sorted(values: number[]): readonly number[] {
    if (!this.#isSorted) values.sort((a, b) => a - b);
    this.#isSorted = true;
    return values;
  }

  #collapse(values: readonly number[]): void {
    this.#values = undefined;
    for (const value of values) this.#addToBin(value);
  }

  #addToBin(value: number): void {
    this.#bins ??= new Map();
    const bin = Math.ceil(Math.log(Math.max(value, LEAST)) / GROWTH);
    this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + 1);
  }

  #sortedBins(): readonly (readonly [number, number])[] {
    return [...(this.#bins ?? [])].sort(([a], [b]) => a - b);
  }
}

/** As far, in proportion, from one end of its bin as from the other. */
function middleOf(bin: number): number {
  return (2 * Math.exp(bin * GROWTH)) / (1 + Math.exp(GROWTH));
}
