/**
 * One exchange has at most this many settlements, this many requests and this many reports. The next exchange takes the
 * rest. A store that has to apply more at once may exceed its time limit, and SQLite would block the event loop (law S2).
 */
export const MAX_PARTS = 32;

/** Removes the first entries of a map, at most `most`, and returns them. Takes time proportional to `most`. */
export function takeFirst<Key, Value>(map: Map<Key, Value>, most: number): readonly (readonly [Key, Value])[] {
  const taken: (readonly [Key, Value])[] = [];
  for (const entry of map) {
    if (taken.length >= most) break;
    taken.push(entry);
  }
  for (const [key] of taken) map.delete(key);
  return taken;
}
