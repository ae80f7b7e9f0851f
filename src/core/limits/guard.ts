import type { Rate } from "./rate.ts";

/**
 * The guard widens every window, because network jitter changes the time between two requests (law L12). If a host
 * sends a 429 although no window was exceeded here, the guard is too narrow for it.
 */
export const MAX_GUARD_US = 250_000;
const MIN_WIDENED_GUARD_US = 25_000;
const GUARD_HALVING_US = 3_600_000_000;

/** The guard after a 429 that no exceeded window explains: doubled, up to the maximum. */
export function widenedGuardUs(guardUs: number): number {
  return Math.min(MAX_GUARD_US, Math.max(MIN_WIDENED_GUARD_US, guardUs * 2));
}

/** The guard after `elapsedUs` without such a 429: halved for each full hour, never below the policy's `guard_ms`. */
export function decayedGuardUs(guardUs: number, policyUs: number, elapsedUs: number): number {
  const hours = Math.floor(elapsedUs / GUARD_HALVING_US);
  return Math.max(policyUs, Math.floor(guardUs / 2 ** hours));
}

/**
 * Distance between two sends of a smoothed key, `T / (N - 2)` of its shortest window (law L12). 0 without rates.
 * A server that estimates a window from two fixed buckets can count up to twice the limit although no window was exceeded
 * here; even spacing prevents that. Longer windows are left out, because spacing an hour's quota would only slow the key
 * down.
 */
export function evenSpacingUs(rates: readonly Rate[]): number {
  if (rates.length === 0) return 0;
  const { limit, windowUs } = rates.reduce((tightest, rate) => {
    const isShorter = rate.windowUs < tightest.windowUs;
    return isShorter || (rate.windowUs === tightest.windowUs && rate.limit < tightest.limit) ? rate : tightest;
  });
  return Math.ceil(windowUs / Math.max(1, limit - 2));
}

/**
 * The distance before and after a send that uses several units: such a server counts them all at once, as if the limit
 * were so many times smaller.
 * @param spacingUs the distance between sends of one unit
 * @param limit of the window that the spacing follows from
 */
export function heavySpacingUs(spacingUs: number, limit: number, units: number): number {
  if (units <= 1 || spacingUs === 0) return spacingUs;
  // In whole milliseconds, as timers have them.
  return Math.ceil((spacingUs * Math.max(1, limit - 2)) / Math.max(1, limit / units - 2) / 1000) * 1000;
}
