/** Our limiter, set up for what is measured. */
import { RateLimiter } from "../../src/gate/limiter-public.ts";
import { SystemTime } from "../../src/time/system-time.ts";

/**
 * The real clock, and what was skipped. Every limiter of a bench has one of these: two kinds of clock would make the
 * compiler treat all of them worse than a program with one, and a clock that costs nothing would flatter us.
 */
export class SkippingTime extends SystemTime {
  /** A day to begin with: the clock of a process that has just started is a small integer, which costs less to keep. */
  skippedUs = 86_400_000_000;

  override monotonicUs(): number {
    return super.monotonicUs() + this.skippedUs;
  }
}

export const DEFAULT_RATES = "10/SECOND+5000/HOUR";

export function limiterOf(rates: string, time: SkippingTime = new SkippingTime(), guardMs = 25): RateLimiter {
  return new RateLimiter({ defaults: { metadata: { rates, guard_ms: guardMs } } }, { time });
}

/** Full after so many requests, for longer than any run. */
export const FULL = { after: 10, oneWindow: "10/HOUR", twoWindows: "10/HOUR+10/DAY" } as const;

export function fullLimiter(rates: string, hosts: readonly string[]): RateLimiter {
  const limiter = limiterOf(rates);
  for (const host of hosts) for (let made = 0; made < FULL.after; made += 1) limiter.tryAcquire({ host });
  return limiter;
}

/** In scattered order: hosts met in the order in which they lie in memory would flatter every keyed contestant. */
export function scatteredHosts(count: number): readonly string[] {
  const stride = 7919;
  return Array.from({ length: count }, (_, index) => `host-${(index * stride) % count}.example.org`);
}
