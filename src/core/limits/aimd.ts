/**
 * Additive increase, multiplicative decrease (law L9): how a key's pace follows what its server says.
 * The multiplier m stretches time, a window T becomes T / m, so that the history stays valid and slow rates such as
 * one in three seconds can be slowed further.
 */
export interface AimdPolicy {
  readonly enabled: boolean;
  /** How long calls are counted before the multiplier may move. */
  readonly windowUs: number;
  /** The share of throttled answers that slows a key down. */
  readonly highRatio: number;
  readonly increase: number;
  readonly decrease: number;
  readonly minMultiplier: number;
  readonly maxMultiplier: number;
}

/** What one window saw. */
export interface AimdWindow {
  readonly calls: number;
  readonly throttled: number;
  /** How many calls the key's rates would have allowed meanwhile. */
  readonly allowance: number;
}

/** Fewer calls prove nothing. */
const MIN_CALLS = 10;

export function nextMultiplier(policy: AimdPolicy, multiplier: number, seen: AimdWindow): number {
  if (seen.calls >= MIN_CALLS && seen.throttled / seen.calls >= policy.highRatio) {
    return Math.max(policy.minMultiplier, thousandths(multiplier * (1 - policy.decrease)));
  }
  // A key that hardly used what it had says nothing about whether more would be welcome.
  const isCalm = seen.throttled === 0 && seen.calls > 0 && seen.calls >= seen.allowance / 2;
  return isCalm ? Math.min(policy.maxMultiplier, thousandths(multiplier + policy.increase)) : multiplier;
}

/** Keeps 0.8 x 0.8 at 0.64 on every platform and in every table. */
function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}
