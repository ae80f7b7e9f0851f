/**
 * Additive increase, multiplicative decrease (law L9): adapts the pace of a key to the throttled responses of its
 * server.
 * The multiplier m stretches time: a window T becomes T / m. The recorded sends stay valid, and a slow rate such as
 * 1/3SECOND can be slowed further.
 */
export interface AimdPolicy {
  readonly enabled: boolean;
  /** How long calls are counted before the multiplier may change. */
  readonly windowUs: number;
  /** Share of throttled responses, 0 to 1, that slows a key down. */
  readonly highRatio: number;
  /** Added to the multiplier after a window without a throttled response. */
  readonly increase: number;
  /** Share of the multiplier that is removed after a window with too many throttled responses. */
  readonly decrease: number;
  readonly minMultiplier: number;
  readonly maxMultiplier: number;
}

/** The counts of one window, or of several in a row if one had too few calls. */
export interface AimdWindow {
  readonly calls: number;
  readonly throttled: number;
  /** Share that the key used of what its limits allowed in that time: of the limit that it used most. */
  readonly used: number;
}

/** With fewer calls the share of throttled responses is not meaningful. */
const MIN_CALLS = 10;

/**
 * Whether too few calls were counted to judge their throttled responses. A slow key is then counted over further
 * windows.
 */
export function isUndecided({ calls, throttled }: AimdWindow): boolean {
  return throttled > 0 && calls < MIN_CALLS;
}

export function nextMultiplier(policy: AimdPolicy, multiplier: number, seen: AimdWindow): number {
  if (seen.calls >= MIN_CALLS && seen.throttled / seen.calls >= policy.highRatio) {
    return Math.max(policy.minMultiplier, toThousandths(multiplier * (1 - policy.decrease)));
  }
  // A key that used less than half of its limits does not show that the server accepts more.
  const mayIncrease = seen.throttled === 0 && seen.calls > 0 && seen.used >= 0.5;
  return mayIncrease ? Math.min(policy.maxMultiplier, toThousandths(multiplier + policy.increase)) : multiplier;
}

/** Rounded, so that 0.8 x 0.8 is shown as 0.64. */
function toThousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}
