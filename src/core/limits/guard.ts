import type { Rate } from "./rate.ts";

/**
 * The guard widens every window to absorb what the network does to the distance between two requests (law L12).
 * A 429 although the windows were kept here means that it was too narrow for this host.
 */
export const MAX_GUARD_US = 250_000;
const MIN_WIDENED_GUARD_US = 25_000;
const GUARD_HALVING_US = 3_600_000_000;

/** After a 429 that the windows do not explain: twice as wide, to a limit. */
export function widenedGuardUs(guardUs: number): number {
  return Math.min(MAX_GUARD_US, Math.max(MIN_WIDENED_GUARD_US, guardUs * 2));
}

/** After a calm time: half as wide for every whole hour, never below the policy's own. */
export function decayedGuardUs(guardUs: number, policyUs: number, calmUs: number): number {
  const hours = Math.floor(calmUs / GUARD_HALVING_US);
  return Math.max(policyUs, Math.floor(guardUs / 2 ** hours));
}

/**
 * A server that counts with two fixed buckets can see up to twice the limit where we see it kept. For those the sends
 * of the shortest window are spaced evenly, at (N - 2) / T; spacing out an hour's quota would only waste its seconds.
 */
export function evenSpacingUs(rates: readonly Rate[]): number {
  if (rates.length === 0) return 0;
  const { limit, windowUs } = rates.reduce((tightest, rate) => {
    const isShorter = rate.windowUs < tightest.windowUs;
    return isShorter || (rate.windowUs === tightest.windowUs && rate.limit < tightest.limit) ? rate : tightest;
  });
  return Math.ceil(windowUs / Math.max(1, limit - 2));
}
