import { ArrivalLog, type ServerReport } from "./arrivals.ts";
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

/**
 * Accepts or rejects requests, and records all. Rejected requests do not count against the limit; a server that counts
 * them would be stricter with clients that send too much.
 */
export class RaceLimitEnforcer {
  readonly #rule: ServerRule;
  readonly #counters = new Map<readonly RaceWindow[], readonly Counter[]>();
  readonly #arrivals = new ArrivalLog();
  #firstMs: number | undefined;
  #retryAfterUntilMs: number | undefined;

  constructor(rule: ServerRule) {
    this.#rule = rule;
  }

  arrive(clockMs: number, role: RaceRole): ServerReply {
    this.#firstMs ??= clockMs;
    const nowMs = clockMs - this.#firstMs;
    const verdict = this.#judge(nowMs, clockMs, role);
    this.#arrivals.add({ atMs: nowMs, role, status: verdict.status });
    return verdict;
  }

  report(): ServerReport {
    return {
      ...this.#arrivals.report(this.#rule.limits, this.#rule.outage),
      ...(this.#retryAfterUntilMs !== undefined && { retryAfterUntilMs: this.#retryAfterUntilMs }),
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
