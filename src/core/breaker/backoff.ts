export interface BackoffPolicy {
  /** Upper bound of the first pause, in milliseconds. It doubles with each failed attempt. */
  readonly baseMs: number;
  /** Upper bound of every pause, in milliseconds. */
  readonly capMs: number;
}

/**
 * The pause before the next attempt, drawn between 0 and a bound that doubles ("full jitter"), so that requests that
 * failed together do not retry together. The server's Retry-After is a lower bound, even above `capMs`.
 * @param failed number of failed attempts so far, 1 or more
 * @param random in [0, 1)
 */
export function backoffMs(
  { baseMs, capMs }: BackoffPolicy,
  failed: number,
  random: number,
  retryAfterMs: number | undefined,
): number {
  const maxMs = Math.min(capMs, baseMs * 2 ** Math.min(failed - 1, 52));
  return Math.max(Math.floor(random * (maxMs + 1)), retryAfterMs ?? 0);
}
