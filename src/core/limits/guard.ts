/**
 * The guard widens every window, because network jitter changes the time between two requests (law L12).
 * A 429 although no window was exceeded here means that the guard is too narrow for this host.
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
