import { Random } from "../sim/random.ts";

/** So many of them, the same for the same seed, in their old order. */
export function sampleOf<Item>(items: readonly Item[], size: number, seed: number): readonly Item[] {
  const random = new Random(seed);
  return items
    .map((item, index) => ({ item, index, draw: random.next() }))
    .sort((a, b) => a.draw - b.draw)
    .slice(0, size)
    .sort((a, b) => a.index - b.index)
    .map(({ item }) => item);
}
