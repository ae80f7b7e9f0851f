/** Random numbers in [0, 1); equal for equal seeds (mulberry32). */
export function randomFrom(seed: string): () => number {
  let state = 0;
  for (const char of seed) state = (Math.imul(state, 31) + (char.codePointAt(0) ?? 0)) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
