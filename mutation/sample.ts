import { Luck } from "../sim/random.ts";

/** So many of them, the same for the same seed, in their old order. */
export function sampleOf<Item>(items: readonly Item[], size: number, seed: number): readonly Item[] {
  const luck = new Luck(seed);
  return items
    .map((item, index) => ({ item, index, draw: luck.next() }))
    .sort((a, b) => a.draw - b.draw)
    .slice(0, size)
    .sort((a, b) => a.index - b.index)
    .map(({ item }) => item);
}
