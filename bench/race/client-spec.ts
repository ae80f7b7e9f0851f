/** Who takes part, and how each was set up: one line that a reader can check against its documentation. */
import type { ClientModule } from "./client.ts";

export interface ClientSpec {
  /** Its file in `clients/`. */
  readonly id: string;
  readonly name: string;
  /** The package whose version is quoted; undefined for what comes with Node or is ours. */
  readonly package?: string;
  readonly how: string;
  readonly isOurs: boolean;
  /** Whether it holds requests back before a server complains. */
  readonly hasLimiter: boolean;
  /** Takes part in scenarios that ask for it alone. */
  readonly isExtra?: boolean;
  /** The kinds of store that it can share limits through. */
  readonly shares: readonly ("sqlite" | "redis")[];
  /** Takes part in a quick run. */
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
    how: "the same with `shape: smooth`, as one sets it for a server that is known to count in two buckets",
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
    how: "`interceptors.retry` on an `Agent`, no limiter; `maxRetries: 9`, `minTimeout: 500`, `maxTimeout: 10000`, `timeoutFactor: 2`, `retryAfter: true`; it draws no jitter",
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
    how: '`Bottleneck.Group`; `minTime: interval / limit` for the shortest window as its quick start has it, `reservoir` refilled for a second one, `chain` for what roles share, a `timeout` of two windows, `datastore: "ioredis"` for processes',
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
];

export function clientSpecOf(id: string): ClientSpec {
  const found = CLIENTS.find(spec => spec.id === id);
  if (found === undefined)
    throw new RangeError(
      `there is no client ${JSON.stringify(id)}; there are ${CLIENTS.map(one => one.id).join(", ")}`,
    );
  return found;
}

/** Loaded in the process that runs it, and nowhere else: most of them need packages that only the race has. */
export async function clientModuleOf(id: string): Promise<ClientModule> {
  return (await import(`./clients/${clientSpecOf(id).id}.ts`)) as ClientModule;
}
