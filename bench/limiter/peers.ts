/** The other libraries, each with its fastest call for one request. */
import Bottleneck from "bottleneck";
import { RateLimiter as UnkeyedLimiter } from "limiter";
import PQueue from "p-queue";
import pThrottle from "p-throttle";
import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible";
import { asyncCase, batchCase, syncCase } from "../kit/timed-case.ts";
import { keyed, type LimiterCase, mapped, unkeyed } from "./limiter-case.ts";

const ENDLESS = 1e9;
const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

const FLEXIBLE = "rate-limiter-flexible await consume(host)";
const FLEXIBLE_UNION = "rate-limiter-flexible await union.consume(host)";
export const UNKEYED_PEER = "limiter tryRemoveTokens(1)";
const MAPPED_PEER = "limiter map.get(host).tryRemoveTokens(1)";

export function allowingPeers(hosts: readonly string[]): readonly LimiterCase[] {
  const flexible = new RateLimiterMemory({ points: ENDLESS, duration: HOUR_S });
  const union = flexibleUnion(ENDLESS);
  const limiter = new UnkeyedLimiter({ tokensPerInterval: ENDLESS, interval: "hour" });
  const limiters = mappedLimiters(hosts, ENDLESS);
  const throttled = pThrottle({ limit: ENDLESS, interval: 1000 })(noop);
  return [
    asyncCase(keyed(FLEXIBLE, 1), hosts, host => flexible.consume(host), true),
    asyncCase(keyed(FLEXIBLE_UNION, 2), hosts, host => union.consume(host), true),
    syncCase(unkeyed(UNKEYED_PEER), hosts, () => limiter.tryRemoveTokens(1), true),
    syncCase(mapped(MAPPED_PEER), hosts, host => limiters.get(host)?.tryRemoveTokens(1) ?? false, true),
    asyncCase(unkeyed("p-throttle await throttled()"), hosts, () => throttled(), true),
  ];
}

/** Libraries that start a job for every call. They leave so much garbage that no other case may run between them. */
export function heavyPeers(hosts: readonly string[]): readonly LimiterCase[] {
  const queue = new PQueue({ intervalCap: ENDLESS, interval: 1000 });
  const group = new Bottleneck.Group({
    reservoir: ENDLESS,
    reservoirRefreshAmount: ENDLESS,
    reservoirRefreshInterval: 1000,
  });
  return [
    asyncCase(unkeyed("p-queue await add(noop)"), hosts, () => queue.add(noop), true),
    batchCase(keyed("bottleneck group.key(host).schedule(noop), 20 at once", 1), hosts, host =>
      group.key(host).schedule(asyncNoop),
    ),
  ];
}

/** p-throttle and p-queue cannot refuse: calls beyond the limit wait. */
export async function refusingPeers(hosts: readonly string[], fullAfter: number): Promise<readonly LimiterCase[]> {
  const flexible = new RateLimiterMemory({ points: fullAfter, duration: HOUR_S });
  const union = flexibleUnion(fullAfter);
  const limiter = new UnkeyedLimiter({ tokensPerInterval: fullAfter, interval: "hour" });
  const limiters = mappedLimiters(hosts, fullAfter);
  for (let made = 0; made < fullAfter; made += 1) {
    limiter.tryRemoveTokens(1);
    for (const host of hosts) {
      limiters.get(host)?.tryRemoveTokens(1);
      await Promise.all([flexible.consume(host), union.consume(host)]);
    }
  }
  return [
    asyncCase(keyed(FLEXIBLE, 1), hosts, host => flexible.consume(host), false),
    asyncCase(keyed(FLEXIBLE_UNION, 2), hosts, host => union.consume(host), false),
    syncCase(unkeyed(UNKEYED_PEER), hosts, () => limiter.tryRemoveTokens(1), false),
    syncCase(mapped(MAPPED_PEER), hosts, host => limiters.get(host)?.tryRemoveTokens(1) ?? true, false),
  ];
}

function mappedLimiters(hosts: readonly string[], tokensPerInterval: number): ReadonlyMap<string, UnkeyedLimiter> {
  return new Map(hosts.map(host => [host, new UnkeyedLimiter({ tokensPerInterval, interval: "hour" })]));
}

function flexibleUnion(points: number): RateLimiterUnion {
  return new RateLimiterUnion(
    new RateLimiterMemory({ keyPrefix: "hour", points, duration: HOUR_S }),
    new RateLimiterMemory({ keyPrefix: "day", points, duration: DAY_S }),
  );
}

function noop(): void {
  // Only the limiter is timed.
}

async function asyncNoop(): Promise<void> {
  // Bottleneck needs a function that returns a promise.
}
