import { budgetOf, type WireRequest } from "./facts.ts";
import { wallMsAt } from "./machine.ts";
import type { Fault, HostPlan, RatePlan } from "./plan.ts";
import { CREDITS_HEADER } from "./policy.ts";
import { falseRateLimitHeaders, rateLimitHeaders } from "./rate-limit-headers.ts";
import { type RetryAfterHeaders, retryAfterHeaders } from "./retry-after.ts";
import { type Enforcer, enforcerOf } from "./servers/enforcer.ts";

export interface SimResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly bodyBytes: number;
  /** The connection breaks in the middle of the body. */
  readonly isCut: boolean;
  readonly retryAfter: RetryAfterHeaders | undefined;
  /** `max-age` in seconds; 0 for none. */
  readonly maxAgeS: number;
  /** The limit that rejected the request, if any. */
  readonly rejectedBy: string | undefined;
  /** Credits that the request has used, if the response says so. */
  readonly usedCredits: number | undefined;
}

/** Value of `rejectedBy` when too many requests are in flight. */
export const CONCURRENCY = "concurrency";

type Outage = Extract<Fault, { kind: "outage" }>;
type Throttle = Extract<Fault, { kind: "throttle" }>;
type LieFault = Extract<Fault, { kind: "lie" }>;

interface EnforcedRate {
  readonly name: string;
  readonly rate: RatePlan;
  readonly enforcer: Enforcer;
}

/** One simulated host: enforces its limits on arriving requests, by its own clock, and responds or fails. */
export class SimServer {
  readonly plan: HostPlan;
  readonly #totals: readonly EnforcedRate[];
  /** The limits of each role, by the name of the role budget: partitions have their own. */
  readonly #scopes = new Map<string, readonly EnforcedRate[]>();
  readonly #busy = new Map<string, number>();
  outage: Outage | undefined;
  throttle: Throttle | undefined;
  lie: LieFault | undefined;

  constructor(plan: HostPlan) {
    this.plan = plan;
    this.#totals = plan.total.map(rate => this.#enforced("total", rate));
  }

  /** Called when the headers of a request have arrived. */
  receive(request: WireRequest, isConditional: boolean, nowUs: number): SimResponse {
    const { server } = this.plan;
    const date = new Date(wallMsAt(nowUs, server.wallOffsetMs)).toUTCString();
    const scopes = request.units > 0 ? [...this.#totals, ...this.#scopesOf(request)] : [];
    const full = scopes.find(({ enforcer }) => !enforcer.has(request.units, nowUs));
    if (full !== undefined) return plainResponse(429, { date }, { rejectedBy: full.name });
    for (const { enforcer } of scopes) enforcer.count(request.units, nowUs);
    const busy = (this.#busy.get(budgetOf(request)) ?? 0) + 1;
    const most = this.plan.roleLimits[request.role]?.maxConcurrent ?? Number.POSITIVE_INFINITY;
    if (server.enforcesConcurrency && busy > most) return plainResponse(429, { date }, { rejectedBy: CONCURRENCY });
    if (this.throttle !== undefined) return this.#throttled(this.throttle, nowUs);
    if (this.outage !== undefined) return this.#failing(this.outage, date);
    const headers: Record<string, string | string[]> = { date, ...this.#announcedHeaders(request, nowUs) };
    const { maxAgeS } = server;
    if (maxAgeS > 0) Object.assign(headers, { "cache-control": `max-age=${maxAgeS}`, etag: '"1"' });
    const usedCredits = this.plan.credits?.isSettled ? request.usedCredits : undefined;
    if (usedCredits !== undefined) headers[CREDITS_HEADER] = `${usedCredits}`;
    if (isConditional && maxAgeS > 0) return { ...plainResponse(304, headers), maxAgeS, usedCredits };
    return { ...plainResponse(200, headers, { bodyBytes: 100 }), maxAgeS, usedCredits };
  }

  requestStarted(request: WireRequest): void {
    this.#busy.set(budgetOf(request), (this.#busy.get(budgetOf(request)) ?? 0) + 1);
  }

  requestEnded(request: WireRequest): void {
    this.#busy.set(budgetOf(request), (this.#busy.get(budgetOf(request)) ?? 0) - 1);
  }

  #enforced(name: string, rate: RatePlan): EnforcedRate {
    const { model, enforcedShare } = this.plan.server;
    const enforced = { ...rate, limit: Math.max(1, Math.floor(rate.limit * enforcedShare)) };
    return { name: `${name} ${rate.limit}/${rate.windowMs}ms`, rate, enforcer: enforcerOf(model, enforced) };
  }

  #scopesOf(request: WireRequest): readonly EnforcedRate[] {
    const budget = budgetOf(request);
    const scopes =
      this.#scopes.get(budget) ??
      (this.plan.roleLimits[request.role]?.rates ?? []).map(rate => this.#enforced(budget, rate));
    this.#scopes.set(budget, scopes);
    return scopes;
  }

  #throttled({ status, form, seconds }: Throttle, nowUs: number): SimResponse {
    const retryAfter = retryAfterHeaders(form, seconds, wallMsAt(nowUs, this.plan.server.wallOffsetMs));
    return { ...plainResponse(status, retryAfter.headers), retryAfter };
  }

  #failing({ how }: Outage, date: string): SimResponse {
    return how === "cut"
      ? { ...plainResponse(200, { date }, { bodyBytes: 100 }), isCut: true }
      : plainResponse(how === "error" ? 500 : 502, { date });
  }

  #announcedHeaders(request: WireRequest, nowUs: number): Readonly<Record<string, string>> {
    const [scope] = this.#scopesOf(request);
    if (scope === undefined) return {};
    if (this.lie !== undefined) return falseRateLimitHeaders(this.lie.lie, scope.rate);
    return rateLimitHeaders(this.plan.server.announces, scope.rate, scope.enforcer.remaining(nowUs));
  }
}

function plainResponse(
  status: number,
  headers: SimResponse["headers"],
  { bodyBytes = 0, rejectedBy }: { readonly bodyBytes?: number; readonly rejectedBy?: string } = {},
): SimResponse {
  return {
    ...{ status, headers, bodyBytes, isCut: false, retryAfter: undefined, maxAgeS: 0, rejectedBy },
    usedCredits: undefined,
  };
}
