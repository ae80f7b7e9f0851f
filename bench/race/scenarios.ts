/** R1 to R11. A quick run has fewer requests; its numbers are not reliable. */
import type { RaceLimits } from "./limits.ts";
import type { Scenario } from "./scenario.ts";

const SECOND = 1000;
const HOUR = 3_600_000;
const TEN: RaceLimits = { metadata: [{ limit: 10, windowMs: SECOND }] };
const TWENTY: RaceLimits = { metadata: [{ limit: 20, windowMs: SECOND }] };
const EIGHT: RaceLimits = { metadata: [{ limit: 8, windowMs: SECOND }] };

export function scenarios(isQuick: boolean): readonly Scenario[] {
  const pick = <Value>(full: Value, quick: Value): Value => (isQuick ? quick : full);
  return [
    {
      id: "r1",
      race: "R1",
      title: "one window",
      what: "10 per second, all requests started at once.",
      limits: TEN,
      loads: [{ metadata: pick(70, 25) }],
      promises: ["no-rejections", "near-optimum", "ahead"],
    },
    {
      id: "r2",
      race: "R2",
      title: "two windows",
      what: "8 per second and 20 in 4 seconds, both in any window.",
      limits: {
        metadata: [
          { limit: 8, windowMs: SECOND },
          { limit: 20, windowMs: 4 * SECOND },
        ],
      },
      loads: [{ metadata: pick(40, 18) }],
      promises: ["no-rejections", "near-optimum", "ahead"],
    },
    {
      id: "r3",
      race: "R3",
      title: "long window, virtual time",
      what: "10 per second and 5,000 per hour for some hours. Clocks and timers of the process are virtual, and there is no network, so that nothing is late.",
      limits: {
        metadata: [
          { limit: 10, windowMs: SECOND },
          { limit: pick(5000, 500), windowMs: HOUR },
        ],
      },
      loads: [{ metadata: pick(12_000, 1200) }],
      isVirtual: true,
      promises: ["ahead"],
    },
    {
      id: "r4",
      race: "R4",
      title: "mixed roles on one host",
      what: "8 records per second and 3 files per second, and no more than 10 of both together.",
      limits: {
        metadata: [{ limit: 8, windowMs: SECOND }],
        artifact: [{ limit: 3, windowMs: SECOND }],
        total: [{ limit: 10, windowMs: SECOND }],
      },
      loads: [pick({ metadata: 44, artifact: 8 }, { metadata: 20, artifact: 4 })],
      promises: ["no-rejections", "near-optimum", "ahead"],
    },
    ...([true, false] as const).map(
      (sendsRetryAfter): Scenario => ({
        id: sendsRetryAfter ? "r5-retry-after" : "r5-no-retry-after",
        race: "R5",
        title: `outage ${sendsRetryAfter ? "with" : "without"} Retry-After`,
        what: `20 per second; after 1.5 seconds the server answers with 503 for ${pick(3, 1.3)} seconds, ${sendsRetryAfter ? "with Retry-After" : "without Retry-After: a client that asks rarely notices late that the server is back, while the optimum knows the time"}.`,
        limits: TWENTY,
        loads: [{ metadata: pick(60, 50) }],
        outage: { fromMs: 1500, toMs: pick(4500, 2800), sendsRetryAfter },
        promises: ["no-rejections", "near-optimum", "ahead"],
      }),
    ),
    ...(["sqlite", "redis"] as const).map(
      (store): Scenario => ({
        id: `r6-${store}`,
        race: "R6",
        title: `four processes, ${store === "redis" ? "Redis" : "SQLite"}`,
        what:
          store === "redis"
            ? "The same through a Redis server; only clients that can share limits through Redis."
            : "8 per second for four processes with different amounts of work. A client that cannot share a limit through a file gets a quarter of it for each process.",
        limits: EIGHT,
        loads: pick([20, 14, 14, 8], [8, 6, 4, 4]).map(metadata => ({ metadata })),
        store,
        needsSharedStore: store === "redis",
        promises: ["no-rejections", "near-optimum", "ahead"],
      }),
    ),
    ...(["two-buckets", "fixed-window"] as const).map(
      (counting): Scenario => ({
        id: `r7-${counting}`,
        race: "R7",
        title: counting === "two-buckets" ? "counter-style server, two buckets" : "counter-style server, fixed windows",
        what:
          counting === "two-buckets"
            ? "10 per second: the count of this second, plus the count of the previous second, weighted by the share that a sliding window still covers. The optimum is that of 10 in any second."
            : "10 in each second of the server's clock. The optimum is that of 10 in any second; a client may be faster by chance.",
        limits: TEN,
        loads: [{ metadata: pick(40, 25) }],
        counting,
        hasSmooth: true,
        promises: ["ahead"],
      }),
    ),
    {
      id: "r8",
      race: "R8",
      title: "event-loop stalls",
      what: `R1 with a client whose event loop is blocked ${pick("for 0.5 s, 2 s and 1 s", "for 0.5 s")}. The optimum knows when.`,
      limits: TEN,
      loads: [{ metadata: pick(60, 25) }],
      stalls: pick(
        [
          { atMs: 800, ms: 500 },
          { atMs: 2700, ms: 2000 },
          { atMs: 5400, ms: 1000 },
        ],
        [{ atMs: 800, ms: 500 }],
      ),
      promises: ["no-rejections", "near-optimum", "ahead"],
    },
    {
      id: "r9",
      race: "R9",
      title: "limit halved during the run",
      what: "20 per second, and 10 after 2.5 seconds. The server enforces the new limit at once and announces it only in RateLimit-Policy fields.",
      limits: TWENTY,
      loads: [{ metadata: pick(90, 70) }],
      halvedAtMs: pick(2500, 1500),
      promises: ["ahead"],
    },
    {
      id: "r10",
      race: "R10",
      title: "a million hosts",
      what: "10 per second and 5,000 per hour for each of a million hosts, one request each, 64 at a time over a dispatcher that responds at once. A client stops after 30 seconds, or when it uses 1.5 GB.",
      limits: {
        metadata: [
          { limit: 10, windowMs: SECOND },
          { limit: 5000, windowMs: HOUR },
        ],
      },
      loads: [],
      hosts: pick(1_000_000, 20_000),
      promises: [],
    },
    {
      id: "r11-nginx",
      race: "R11",
      title: "nginx, limit_req with a burst",
      what: "`limit_req_zone … rate=10r/s` and `limit_req … burst=9 nodelay`: ten requests at once, and one more each 100 ms. nginx sends no Retry-After.",
      limits: TEN,
      loads: [{ metadata: pick(40, 25) }],
      server: { kind: "nginx", rate: "10r/s", burst: 9 },
      promises: ["no-rejections", "near-optimum", "ahead"],
    },
    {
      id: "r11-nginx-no-burst",
      race: "R11",
      title: "nginx, limit_req without a burst",
      what: "`rate=10r/s` alone, which is the default: a request is rejected if it comes less than 100 ms after the last one. The limit of the clients is 1 in 100 ms.",
      limits: { metadata: [{ limit: 1, windowMs: 100 }] },
      loads: [{ metadata: pick(40, 25) }],
      server: { kind: "nginx", rate: "10r/s", burst: 0 },
      promises: ["no-rejections", "ahead"],
    },
    ...(["express-rate-limit", "rate-limiter-flexible"] as const).map(
      (kind): Scenario => ({
        id: `r11-${kind}`,
        race: "R11",
        title: `Express with ${kind}`,
        what: "10 per second, counted as in the first example of its documentation: a window begins with the first request after the last one has ended.",
        limits: TEN,
        loads: [{ metadata: pick(40, 25) }],
        server: { kind },
        promises: ["no-rejections", "ahead"],
      }),
    ),
  ];
}
