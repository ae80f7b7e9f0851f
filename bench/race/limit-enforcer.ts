import type { Interval } from "./bound.ts";
import { type Counter, type Counting, counterOf } from "./counters.ts";
import type { RaceLimits, RaceRole, RaceWindow } from "./limits.ts";

/** How the server of a scenario behaves; instants in milliseconds since its first request. */
export interface ServerRule {
  readonly limits: RaceLimits;
  /** @default "any-window" */
  readonly counting?: Counting;
  /** When it answers everybody with 503, and whether it says for how long. */
  readonly outage?: Interval & { readonly sendsRetryAfter: boolean };
  /** When its limits are halved, which it says in RateLimit fields with every answer and nowhere else. */
  readonly halvedAtMs?: number;
}

export interface ServerReply {
  readonly status: 200 | 429 | 503;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a server saw. */
export interface ServerReport {
  readonly arrivals: number;
  /** Answered with 429. */
  readonly rejections: number;
  /** That reached it while it was down. */
  readonly duringOutage: number;
  /** From the end of the outage to the first success. */
  readonly recoveryMs?: number;
  /** Until when the first who met the outage was told to stay away: whole seconds, so that it may be after its end. */
  readonly retryAfterUntilMs?: number;
  /** The most that came in one window, wherever that begins, of the window that was exceeded most; rejected ones too. */
  readonly busiest: { readonly count: number; readonly limit: number; readonly windowMs: number };
}

interface RequestArrival {
  readonly atMs: number;
  readonly role: RaceRole;
  readonly status: number;
}

/**
 * Decides who is let in, and remembers everybody. Those it rejects do not count against the limit: a server that counts
 * them as well would be harder on whoever comes too often.
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

  /** The counters go by the server's clock as it is: windows of the clock begin where they begin. */
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

/** Whole seconds, rounded up: there is nothing finer in the field. */
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

/** The arrivals are in order, so that the window slides over them once. */
function most(arrivals: readonly RequestArrival[], windowMs: number): number {
  let from = 0;
  let busiest = 0;
  for (const [index, { atMs }] of arrivals.entries()) {
    while ((arrivals[from]?.atMs ?? atMs) <= atMs - windowMs) from += 1;
    busiest = Math.max(busiest, index - from + 1);
  }
  return busiest;
}
