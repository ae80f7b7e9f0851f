import { Random } from "../sim/random.ts";

/** A random sample of `size` items in their original order; the same seed gives the same sample. */
export function sampleOf<Item>(items: readonly Item[], size: number, seed: number): readonly Item[] {
  const random = new Random(seed);
  return items
    .map((item, index) => ({ item, index, draw: random.next() }))
    .sort((a, b) => a.draw - b.draw)
    .slice(0, size)
    .sort((a, b) => a.index - b.index)
    .map(({ item }) => item);
}
