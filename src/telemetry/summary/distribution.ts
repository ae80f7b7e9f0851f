/** Number of values above 0 that are stored exactly. */
const EXACT_MAX = 65_536;
/** If there are more, they are counted in bins that grow by 2 %, which makes percentiles accurate to 1 %. */
const LOG_GROWTH = Math.log(1.02);
/** Smaller values are counted as this one. */
const BINNED_MIN = 1e-3;

/**
 * Percentiles of numbers that are not negative. They are exact for up to 65,536 values above 0, and any number of zeros;
 * for more values they are accurate to 1 %, from a few hundred bins. Count, sum and maximum are always exact.
 */
export class Distribution {
  #zeros = 0;
  /** The exact values above 0; undefined once they are counted in bins. */
  #values: number[] | undefined = [];
  #isSorted = true;
  /** How many values each bin has; undefined while the values are exact. */
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

  /** By nearest rank: the smallest value that at least this share of all values do not exceed. 0 without values. */
  percentile(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.count));
    if (rank <= this.#zeros || this.count === 0) return 0;
    let remaining = rank - this.#zeros;
    if (this.#values !== undefined) return this.#sorted(this.#values)[remaining - 1] ?? this.max;
    for (const [bin, count] of this.#sortedBins()) {
      remaining -= count;
      if (remaining <= 0) return Math.min(this.max, middleOf(bin));
    }
    return this.max;
  }

  /** The sum of min(value, bound) over all values. */
  sumUpTo(bound: number): number {
    let sum = 0;
    if (this.#values !== undefined) for (const value of this.#values) sum += Math.min(value, bound);
    else for (const [bin, count] of this.#sortedBins()) sum += count * Math.min(middleOf(bin), bound);
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
    const bin = Math.ceil(Math.log(Math.max(value, BINNED_MIN)) / LOG_GROWTH);
    this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + 1);
  }

  #sortedBins(): readonly (readonly [bin: number, count: number])[] {
    return [...(this.#bins ?? [])].sort(([a], [b]) => a - b);
  }
}

/** The value with the same relative distance to both ends of its bin. */
function middleOf(bin: number): number {
  return (2 * Math.exp(bin * LOG_GROWTH)) / (1 + Math.exp(LOG_GROWTH));
}
