import { EvictingMap } from "../../core/evicting-map.ts";

/** Retries that a host may be sent before its calls have earned any. */
const BUCKET_TOKENS_MAX = 3;
/** What each call earns: one retry for five calls. */
const TOKENS_PER_CALL = 0.2;

interface RetryBucket {
  tokens: number;
}

/**
 * Caps the attempts at a host at 1.2 times its calls plus 3, in any stretch of time (law B7): in an outage most calls
 * fail, and retrying all of them would multiply the load on a host that cannot bear the load it has.
 * Savings are bounded by what one starts with, so that a good year pays for no storm.
 */
export class RetryBudget {
  readonly #buckets = new EvictingMap<RetryBucket>(({ tokens }) => tokens >= BUCKET_TOKENS_MAX);

  /** A new call to the host. */
  earn(host: string): void {
    const bucket = this.#buckets.get(host);
    if (bucket !== undefined) bucket.tokens = Math.min(BUCKET_TOKENS_MAX, bucket.tokens + TOKENS_PER_CALL);
  }

  /** True when one more attempt may be made; then it is paid for. */
  spend(host: string): boolean {
    const bucket = this.#buckets.get(host) ?? { tokens: BUCKET_TOKENS_MAX };
    // Fifths do not add up exactly in binary.
    if (bucket.tokens < 1 - 1e-9) return false;
    bucket.tokens -= 1;
    this.#buckets.add(host, bucket);
    return true;
  }
}
