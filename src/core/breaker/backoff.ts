export interface BackoffPolicy {
  /** The widest first pause. */
  readonly baseMs: number;
  /** No pause is drawn from further up than this. */
  readonly capMs: number;
}

/**
 * The pause before another attempt: anything from nothing to a bound that doubles ("full jitter"), so that those who
 * failed together do not come back together. What the server asked for is a floor, and never cut short.
 * @param failed attempts that have failed so far, from 1
 * @param luck in [0, 1)
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
