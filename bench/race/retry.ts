/** The retry rules of all other clients, as a careful program writes them around a limiter without retries. */
import type { PeerReply } from "./send.ts";

export const RETRY = Object.freeze({ attempts: 10, baseMs: 500, capMs: 10_000 });
export const RETRIED_STATUSES: readonly number[] = [408, 429, 500, 502, 503, 504];

/**
 * Never before the time in Retry-After, plus a random time, so that calls with the same Retry-After do not return
 * together. Without Retry-After the pause is random, with an upper bound that doubles.
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
