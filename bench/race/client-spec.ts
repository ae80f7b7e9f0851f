/** The clients and their setup, in one line each that a reader can compare with its documentation. */
import type { ClientModule } from "./client.ts";

export interface ClientSpec {
  /** Name of its file in `clients/`. */
  readonly id: string;
  readonly name: string;
  /** The package whose version is printed; undefined for Node and docstokg. */
  readonly package?: string;
  readonly how: string;
  readonly isOurs: boolean;
  /** Whether it delays requests before the server rejects any. */
  readonly hasLimiter: boolean;
  /** Only used in scenarios that name it. */
  readonly isExtra?: boolean;
  /** The stores through which it can share limits. */
  readonly shares: readonly ("sqlite" | "redis")[];
  /** It opens its own connections: it has no part in scenarios whose network is replaced. */
  readonly needsNetwork?: boolean;
  /** Used in a quick run. */
  readonly isQuick: boolean;
}

export const OURS = "docstokg";
export const SMOOTH = "docstokg-smooth";

export const CLIENTS: readonly ClientSpec[] = [
  {
    id: OURS,
    name: "docstokg",
    how: "`createHub` with the server's limits as its policy, `maxWaitMs: Infinity`, the cache off; guard (25 ms), retries (4 attempts) and breakers as shipped, the breakers' times at 1:60 like the outage",
    isOurs: true,
    hasLimiter: true,
    shares: ["sqlite", "redis"],
    isQuick: true,
  },
  {
    id: SMOOTH,
    name: "docstokg, smooth",
    how: "the same with `shape: smooth`, for a server that is known to count in two buckets",
    isOurs: true,
    hasLimiter: true,
    isExtra: true,
    shares: ["sqlite", "redis"],
    isQuick: false,
  },
  {
    id: "fetch",
    name: "fetch + retry",
    how: "Node's `fetch` with no limiter; the retry rules alone",
    isOurs: false,
    hasLimiter: false,
    shares: [],
    isQuick: false,
  },
  {
    id: "undici-retry",
    name: "undici retry",
    package: "undici",
    how: "`interceptors.retry` on an `Agent`, no limiter; `maxRetries: 9`, `minTimeout: 500`, `maxTimeout: 10000`, `timeoutFactor: 2`, `retryAfter: true`; it has no jitter",
    isOurs: false,
    hasLimiter: false,
    shares: [],
    isQuick: false,
  },
  {
    id: "p-throttle",
    name: "p-throttle + retry",
    package: "p-throttle",
    how: "`pThrottle({ limit, interval, strict: true })`, one for each window, the longest outermost",
    isOurs: false,
    hasLimiter: true,
    shares: [],
    isQuick: true,
  },
  {
    id: "bottleneck",
    name: "bottleneck + retry",
    package: "bottleneck",
    how: '`Bottleneck.Group`; `minTime: interval / limit` for the shortest window as in its quick start, `reservoir` refilled for a second one, `chain` for what roles share, a `timeout` of two windows, `datastore: "ioredis"` for processes',
    isOurs: false,
    hasLimiter: true,
    shares: ["redis"],
    isQuick: false,
  },
  {
    id: "rate-limiter-flexible",
    name: "rate-limiter-flexible + retry",
    package: "rate-limiter-flexible",
    how: "`RateLimiterQueue` on `RateLimiterMemory({ points, duration })`, one for each window, the longest outermost; on `RateLimiterRedis` for processes",
    isOurs: false,
    hasLimiter: true,
    shares: ["redis"],
    isQuick: false,
  },
  {
    id: "p-queue",
    name: "p-queue + retry",
    package: "p-queue",
    how: "`PQueue({ intervalCap, interval, strict: true })`, one for each window, the longest outermost",
    isOurs: false,
    hasLimiter: true,
    shares: [],
    isQuick: false,
  },
  {
    id: "got",
    name: "got",
    package: "got",
    how: "its own retries, no limiter; `limit: 9`, `backoffLimit: 10000`, `noise: 100`; it obeys Retry-After",
    isOurs: false,
    hasLimiter: false,
    needsNetwork: true,
    shares: [],
    isQuick: false,
  },
  {
    id: "axios-retry",
    name: "axios-retry",
    package: "axios-retry",
    how: "`axiosRetry(client, { retries: 9, retryDelay: exponentialDelay })` from 500 ms, no limiter; it obeys Retry-After",
    isOurs: false,
    hasLimiter: false,
    needsNetwork: true,
    shares: [],
    isQuick: false,
  },
  {
    id: "cockatiel",
    name: "cockatiel",
    package: "cockatiel",
    how: "`wrap(retry, circuitBreaker)` around `fetch`, no limiter; 9 retries with `ExponentialBackoff` from 500 ms to 10 s, a breaker that opens for 1 s after 5 failures",
    isOurs: false,
    hasLimiter: false,
    shares: [],
    isQuick: false,
  },
];

export function clientSpecOf(id: string): ClientSpec {
  const found = CLIENTS.find(spec => spec.id === id);
  if (found === undefined)
    throw new RangeError(`unknown client ${JSON.stringify(id)}; expected ${CLIENTS.map(one => one.id).join(", ")}`);
  return found;
}

/** Loaded only in the process that runs it: most clients need packages that are only installed for the benchmarks. */
export async function clientModuleOf(id: string): Promise<ClientModule> {
  return (await import(`./clients/${clientSpecOf(id).id}.ts`)) as ClientModule;
}
