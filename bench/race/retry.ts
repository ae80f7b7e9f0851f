/** The retry rules that every peer gets: what a careful program writes around a limiter that has none. */
import type { PeerReply } from "./send.ts";

export const RETRY = Object.freeze({ attempts: 10, baseMs: 500, capMs: 10_000 });
export const RETRIED_STATUSES: readonly number[] = [408, 429, 500, 502, 503, 504];

/**
 * Never before the server said, and spread after it, so that those who were told the same do not come back together.
 * Without a word from the server the pause is drawn from 0 to a bound that doubles.
 */
export async function withRetry(attempt: () => Promise<PeerReply>, random: () => number): Promise<number> {
  for (let made = 1; ; made += 1) {
    const reply = await attempt().catch((error: unknown) => {
      if (made >= RETRY.attempts) throw error;
      return { status: 503, retryAfterMs: undefined };
    });
    if (!RETRIED_STATUSES.includes(reply.status) || made >= RETRY.attempts) return reply.status;
    const bound = Math.min(RETRY.capMs, RETRY.baseMs * 2 ** (made - 1));
    const pauseMs = reply.retryAfterMs === undefined ? random() * bound : reply.retryAfterMs + random() * RETRY.baseMs;
    await new Promise(resolve => setTimeout(resolve, pauseMs));
  }
}
