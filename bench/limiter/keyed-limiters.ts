/** The other libraries with state for many hosts. */
import Bottleneck from "bottleneck";
import { RateLimiter as UnkeyedLimiter } from "limiter";
import PQueue from "p-queue";
import pThrottle from "p-throttle";
import { RateLimiterMemory } from "rate-limiter-flexible";

const HOUR_MS = 3_600_000;
const LIMIT = 5000;

export interface KeyedLimiterSpec {
  readonly name: string;
  /** Enough to measure the cost of one host, and not too many for the memory of the machine. */
  readonly idleKeys: number;
  readonly busyKeys: number;
  open(): KeyedLimiter;
}

export interface KeyedLimiter {
  /** Sends one request. Called at most as often as the hour allows. */
  use(host: string): unknown;
}

/** The library that has keys comes first. */
export function peerLimiterSpecs(): readonly KeyedLimiterSpec[] {
  return [
    { name: "rate-limiter-flexible memory, 5000/HOUR", idleKeys: 100_000, busyKeys: 200, open: flexible },
    {
      name: "limiter, 5000/HOUR",
      idleKeys: 100_000,
      busyKeys: 200,
      open: perHost(() => {
        const limiter = new UnkeyedLimiter({ tokensPerInterval: LIMIT, interval: HOUR_MS });
        return () => limiter.tryRemoveTokens(1);
      }),
    },
    {
      name: "p-throttle strict, 5000/HOUR",
      idleKeys: 10_000,
      busyKeys: 20,
      open: perHost(() => pThrottle({ limit: LIMIT, interval: HOUR_MS, strict: true })(noop)),
    },
    {
      name: "p-queue strict, 5000/HOUR",
      idleKeys: 10_000,
      busyKeys: 20,
      open: perHost(() => {
        const queue = new PQueue({ intervalCap: LIMIT, interval: HOUR_MS, strict: true });
        return () => queue.add(noop);
      }),
    },
    {
      name: "bottleneck reservoir, 5000/HOUR",
      idleKeys: 1000,
      busyKeys: 1,
      open: perHost(() => {
        const bottleneck = new Bottleneck({
          reservoir: LIMIT,
          reservoirRefreshAmount: LIMIT,
          reservoirRefreshInterval: HOUR_MS,
        });
        return () => bottleneck.schedule(async () => noop());
      }),
    },
  ];
}

function flexible(): KeyedLimiter {
  const limiter = new RateLimiterMemory({ points: LIMIT, duration: HOUR_MS / 1000 });
  return { use: host => limiter.consume(host) };
}

function perHost(make: () => () => unknown): () => KeyedLimiter {
  return () => {
    const made = new Map<string, () => unknown>();
    return {
      use(host) {
        const known = made.get(host) ?? make();
        made.set(host, known);
        return known();
      },
    };
  };
}

function noop(): void {
  // Only the limiter is measured.
}
