/** The limiter of docstokg, set up for the measurements. */
import { RateLimiter } from "../../src/limiter.ts";
import { SkippingTime } from "../kit/skipping-time.ts";

export const DEFAULT_RATES = "10/SECOND+5000/HOUR";

export function limiterOf(rates: string, time: SkippingTime = new SkippingTime(), guardMs = 25): RateLimiter {
  return new RateLimiter({ defaults: { metadata: { rates, guard_ms: guardMs } } }, { time });
}

/** Full after this many requests, for longer than any run. */
export const FULL = { after: 10, oneWindow: "10/HOUR", twoWindows: "10/HOUR+10/DAY" } as const;

export function fullLimiter(rates: string, hosts: readonly string[]): RateLimiter {
  const limiter = limiterOf(rates);
  for (const host of hosts) for (let made = 0; made < FULL.after; made += 1) limiter.tryAcquire({ host });
  return limiter;
}
