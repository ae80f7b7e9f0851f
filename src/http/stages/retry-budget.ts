import { ForgetfulMap } from "../../core/evicting-map.ts";

/** Retries that a host may be sent before its calls have earned any. */
const START = 3;
/** What each call earns: one retry for five calls. */
const EARNED = 0.2;

interface Purse {
  tokens: number;
}

/**
 * Caps the attempts at a host at 1.2 times its calls plus 3, in any stretch of time (law B7): in an outage most calls
 * fail, and retrying all of them would multiply the load on a host that cannot bear the load it has.
 * Savings are bounded by what one starts with, so that a good year pays for no storm.
 */
export class RetryBudget {
  readonly #purses = new ForgetfulMap<Purse>(({ tokens }) => tokens >= START);

  /** A new call to the host. */
  earn(host: string): void {
    const purse = this.#purses.get(host);
    if (purse !== undefined) purse.tokens = Math.min(START, purse.tokens + EARNED);
  }

  /** True when one more attempt may be made; then it is paid for. */
  spend(host: string): boolean {
    const purse = this.#purses.get(host) ?? { tokens: START };
    // Fifths do not add up exactly in binary.
    if (purse.tokens < 1 - 1e-9) return false;
    purse.tokens -= 1;
    this.#purses.add(host, purse);
    return true;
  }
}
