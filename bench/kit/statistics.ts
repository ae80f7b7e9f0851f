export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The smallest value that at least `percent` of all values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.max(0, rank - 1)] ?? Number.NaN;
}

/** The true median is in this range with the given confidence, whatever the distribution is. */
export function medianRange(values: readonly number[], confidence = 0.95): readonly [low: number, high: number] {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  // The chance that fewer than `rank` of the values are below the median, as of heads in `count` tosses of a coin.
  let chance = 0.5 ** count;
  let term = chance;
  let rank = 0;
  while (chance <= (1 - confidence) / 2) {
    rank += 1;
    term *= (count - rank + 1) / rank;
    chance += term;
  }
  const index = Math.max(0, rank - 1);
  return [sorted[index] ?? Number.NaN, sorted[count - 1 - index] ?? Number.NaN];
}
