import { EvictingMap } from "../../core/evicting-map.ts";

/** Tokens of a new host, and the most that it can have. One retry costs one token. */
const BUCKET_TOKENS_MAX = 3;
/** Five calls allow one retry. */
const TOKENS_PER_CALL = 0.2;

interface RetryBucket {
  tokens: number;
}

/**
 * Limits the attempts at a host to 1.2 times its calls plus 3, in any period (law B7). In an outage most calls fail, and
 * retrying all of them would multiply the load on an overloaded host. The tokens are capped, so that a long time without
 * failures does not allow many retries at once.
 */
export class RetryBudget {
  readonly #buckets = new EvictingMap<RetryBucket>(({ tokens }) => tokens >= BUCKET_TOKENS_MAX);

  /** Must be called once for each call to the host. */
  earn(host: string): void {
    const bucket = this.#buckets.get(host);
    if (bucket !== undefined) bucket.tokens = Math.min(BUCKET_TOKENS_MAX, bucket.tokens + TOKENS_PER_CALL);
  }

  /** Takes one token. False, and nothing taken, when there is none. */
  spend(host: string): boolean {
    const bucket = this.#buckets.get(host) ?? { tokens: BUCKET_TOKENS_MAX };
    // Sums of 0.2 are not exact in binary.
    if (bucket.tokens < 1 - 1e-9) return false;
    bucket.tokens -= 1;
    this.#buckets.add(host, bucket);
    return true;
  }
}
