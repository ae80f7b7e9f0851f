import type { Interval } from "./bound.ts";
import { type Counter, type Counting, counterOf } from "./counters.ts";
import type { RaceLimits, RaceRole, RaceWindow } from "./limits.ts";

/** The behaviour of a server; times are milliseconds since its first request. */
export interface ServerRule {
  readonly limits: RaceLimits;
  /** @default "any-window" */
  readonly counting?: Counting;
  /** When it answers all requests with 503, and whether it sends Retry-After. */
  readonly outage?: Interval & { readonly sendsRetryAfter: boolean };
  /** When its limits are halved. Only the RateLimit fields of its responses announce that. */
  readonly halvedAtMs?: number;
}

export interface ServerReply {
  readonly status: 200 | 429 | 503;
  readonly headers: Readonly<Record<string, string>>;
}

/** The counts of a server. */
export interface ServerReport {
  readonly arrivals: number;
  /** Requests answered with 429. */
  readonly rejections: number;
  /** Requests that arrived during the outage. */
  readonly duringOutage: number;
  /** From the end of the outage to the first success. */
  readonly recoveryMs?: number;
  /** The end of the first Retry-After of the outage: whole seconds, so it may be after the end of the outage. */
  readonly retryAfterUntilMs?: number;
  /** The most requests in any interval of the window that was exceeded most; rejected ones included. */
  readonly busiest: { readonly count: number; readonly limit: number; readonly windowMs: number };
}

interface RequestArrival {
  readonly atMs: number;
  readonly role: RaceRole;
  readonly status: number;
}

/**
 * Accepts or rejects requests, and records all. Rejected requests do not count against the limit; a server that counts
 * them would be stricter with clients that send too much.
 */
export class RaceLimitEnforcer {
  readonly #rule: ServerRule;
  readonly #counters = new Map<readonly RaceWindow[], readonly Counter[]>();
  readonly #arrivals: RequestArrival[] = [];
  #firstMs: number | undefined;
  #retryAfterUntilMs: number | undefined;

  constructor(rule: ServerRule) {
    this.#rule = rule;
  }

  arrive(clockMs: number, role: RaceRole): ServerReply {
    this.#firstMs ??= clockMs;
    const nowMs = clockMs - this.#firstMs;
    const verdict = this.#judge(nowMs, clockMs, role);
    this.#arrivals.push({ atMs: nowMs, role, status: verdict.status });
    return verdict;
  }

  report(): ServerReport {
    const { outage } = this.#rule;
    const recovered = outage && this.#arrivals.find(({ atMs, status }) => atMs >= outage.toMs && status === 200)?.atMs;
    return {
      arrivals: this.#arrivals.length,
      rejections: this.#arrivals.filter(({ status }) => status === 429).length,
      duringOutage: this.#arrivals.filter(({ status }) => status === 503).length,
      ...(outage !== undefined && recovered !== undefined && { recoveryMs: recovered - outage.toMs }),
      ...(this.#retryAfterUntilMs !== undefined && { retryAfterUntilMs: this.#retryAfterUntilMs }),
      busiest: this.#busiest(),
    };
  }

  /** Counters use the clock of the server, so that fixed windows begin at whole windows of the clock. */
  #judge(nowMs: number, clockMs: number, role: RaceRole): ServerReply {
    const { outage, halvedAtMs } = this.#rule;
    if (outage !== undefined && nowMs >= outage.fromMs && nowMs < outage.toMs) {
      if (!outage.sendsRetryAfter) return { status: 503, headers: {} };
      const seconds = retryAfterS(outage.toMs - nowMs);
      this.#retryAfterUntilMs ??= nowMs + seconds * 1000;
      return { status: 503, headers: { "retry-after": String(seconds) } };
    }
    const isHalved = halvedAtMs !== undefined && nowMs >= halvedAtMs;
    const limitOf = ({ limit }: RaceWindow) => (isHalved ? Math.floor(limit / 2) : limit);
    const counters = this.#countersOf(role);
    const waitMs = Math.max(0, ...counters.map(counter => counter.waitMs(clockMs, limitOf(counter.window))));
    const announced = halvedAtMs === undefined ? {} : announcement(counters, limitOf);
    if (waitMs > 0) return { status: 429, headers: { ...announced, "retry-after": String(retryAfterS(waitMs)) } };
    for (const counter of counters) counter.add(clockMs);
    return { status: 200, headers: announced };
  }

  #countersOf(role: RaceRole): readonly Counter[] {
    const { limits, counting = "any-window" } = this.#rule;
    return [limits[role] ?? [], limits.total ?? []].flatMap(windows => {
      const known = this.#counters.get(windows) ?? windows.map(window => counterOf(counting, window));
      this.#counters.set(windows, known);
      return known;
    });
  }

  #busiest(): ServerReport["busiest"] {
    const { limits } = this.#rule;
    const scopes: readonly (readonly [readonly RaceWindow[], readonly RequestArrival[]])[] = [
      ...(["metadata", "artifact"] as const).map(
        role => [limits[role] ?? [], this.#arrivals.filter(arrival => arrival.role === role)] as const,
      ),
      [limits.total ?? [], this.#arrivals],
    ];
    const counts = scopes.flatMap(([windows, arrivals]) =>
      windows.map(window => ({ ...window, count: most(arrivals, window.windowMs) })),
    );
    const [first = { count: 0, limit: 0, windowMs: 0 }, ...others] = counts;
    return others.reduce((worst, one) => (one.count / one.limit > worst.count / worst.limit ? one : worst), first);
  }
}

/** Whole seconds, rounded up, because the field has no fractions. */
function retryAfterS(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

function announcement(
  counters: readonly Counter[],
  limitOf: (window: RaceWindow) => number,
): Readonly<Record<string, string>> {
  const policies = counters.map(({ window }, index) => `"w${index}";q=${limitOf(window)};w=${window.windowMs / 1000}`);
  return { "ratelimit-policy": policies.join(", ") };
}

/** The arrivals are sorted, so one pass is enough. */
function most(arrivals: readonly RequestArrival[], windowMs: number): number {
  let from = 0;
  let busiest = 0;
  for (const [index, { atMs }] of arrivals.entries()) {
    while ((arrivals[from]?.atMs ?? atMs) <= atMs - windowMs) from += 1;
    busiest = Math.max(busiest, index - from + 1);
  }
  return busiest;
}
