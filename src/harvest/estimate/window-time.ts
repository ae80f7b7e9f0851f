/** How long rate limits take for a number of requests, and how many they permit in a time. Pure. */

/** At most `limit` units in any `windowMs`. */
export interface RateWindow {
  readonly limit: number;
  readonly windowMs: number;
}

/**
 * The time from the first unit to the last, if each is sent as early as the windows permit. Exact for one window; for
 * several it is exact as long as the shorter windows divide the longer ones, as seconds and hours do.
 */
export function timeFor(units: number, windows: readonly RateWindow[]): number {
  return earliestMs(
    Math.ceil(units - 1e-9) - 1,
    windows.toSorted((one, other) => other.windowMs - one.windowMs),
  );
}

/** When the unit with this index (from 0) may be sent. The longest window divides the units into rounds. */
function earliestMs(index: number, longestFirst: readonly RateWindow[]): number {
  const [longest, ...shorter] = longestFirst;
  if (longest === undefined || index <= 0) return 0;
  const rounds = Math.floor(index / longest.limit);
  return (
    rounds * Math.max(longest.windowMs, earliestMs(longest.limit, shorter)) + earliestMs(index % longest.limit, shorter)
  );
}

/** The most units that the windows permit within a time, the first one at its start. */
export function unitsIn(ms: number, windows: readonly RateWindow[]): number {
  let most = Number.POSITIVE_INFINITY;
  for (const { limit, windowMs } of windows) most = Math.min(most, limit * (Math.floor(ms / windowMs) + 1));
  return most;
}
