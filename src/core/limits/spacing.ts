import type { Rate } from "./rate.ts";

/**
 * Distance between two sends of a smoothed key, `T / (N - 2)` of its shortest window (law L12). 0 without rates.
 * A server that counts with two fixed buckets can see up to twice the limit although no window was exceeded here; even
 * spacing prevents that. Longer windows are left out, because spacing an hour's quota would only slow the key down.
 */
export function evenSpacingUs(rates: readonly Rate[]): number {
  if (rates.length === 0) return 0;
  const { limit, windowUs } = rates.reduce((tightest, rate) => {
    const isShorter = rate.windowUs < tightest.windowUs;
    return isShorter || (rate.windowUs === tightest.windowUs && rate.limit < tightest.limit) ? rate : tightest;
  });
  return Math.ceil(windowUs / Math.max(1, limit - 2));
}
