/** So many of them, the same for the same seed, in their old order. */
export function sampleOf<Item>(items: readonly Item[], size: number, seed: number): readonly Item[] {
  let state = seed >>> 0;
  // Mulberry32: short, and even enough to draw a sample.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const drawn = items.map((item, index) => ({ item, index, luck: next() }));
  drawn.sort((a, b) => a.luck - b.luck || a.index - b.index);
  return drawn
    .slice(0, size)
    .sort((a, b) => a.index - b.index)
    .map(({ item }) => item);
}
