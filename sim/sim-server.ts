import type { Role } from "../src/policy/roles.ts";
import type { WireRequest } from "./facts.ts";
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
  readonly role: Role | undefined;
  readonly rate: RatePlan;
  readonly enforcer: Enforcer;
}

/** One simulated host: enforces its limits on arriving requests, by its own clock, and responds or fails. */
export class SimServer {
  readonly plan: HostPlan;
  readonly #scopes: readonly EnforcedRate[];
  readonly #busy = new Map<Role, number>();
  outage: Outage | undefined;
  throttle: Throttle | undefined;
  lie: LieFault | undefined;

  constructor(plan: HostPlan) {
    this.plan = plan;
    const { model, enforcedShare } = plan.server;
    const scope = (name: string, role: Role | undefined, rate: RatePlan): EnforcedRate => {
      const enforced = { ...rate, limit: Math.max(1, Math.floor(rate.limit * enforcedShare)) };
      return { name: `${name} ${rate.limit}/${rate.windowMs}ms`, role, rate, enforcer: enforcerOf(model, enforced) };
    };
    const scopes: EnforcedRate[] = plan.total.map(rate => scope("total", undefined, rate));
    for (const [role, limits] of Object.entries(plan.roleLimits)) {
      for (const rate of limits.rates) scopes.push(scope(role, role as Role, rate));
    }
    this.#scopes = scopes;
  }

  /** Called when the headers of a request have arrived. */
  receive(request: WireRequest, isConditional: boolean, nowUs: number): SimResponse {
    const { server } = this.plan;
    const date = new Date(wallMsAt(nowUs, server.wallOffsetMs)).toUTCString();
    const full = this.#scopes.find(
      ({ role, enforcer }) => applies(role, request) && !enforcer.has(request.units, nowUs),
    );
    if (full !== undefined) return plainResponse(429, { date }, { rejectedBy: full.name });
    for (const { role, enforcer } of this.#scopes) if (applies(role, request)) enforcer.count(request.units, nowUs);
    const busy = (this.#busy.get(request.role) ?? 0) + 1;
    const most = this.plan.roleLimits[request.role]?.maxConcurrent ?? Number.POSITIVE_INFINITY;
    if (server.enforcesConcurrency && busy > most) return plainResponse(429, { date }, { rejectedBy: CONCURRENCY });
    if (this.throttle !== undefined) return this.#throttled(this.throttle, nowUs);
    if (this.outage !== undefined) return this.#failing(this.outage, date);
    const headers: Record<string, string | string[]> = { date, ...this.#announcedHeaders(request.role, nowUs) };
    const { maxAgeS } = server;
    if (maxAgeS > 0) Object.assign(headers, { "cache-control": `max-age=${maxAgeS}`, etag: '"1"' });
    const usedCredits = this.plan.credits?.isSettled ? request.usedCredits : undefined;
    if (usedCredits !== undefined) headers[CREDITS_HEADER] = `${usedCredits}`;
    if (isConditional && maxAgeS > 0) return { ...plainResponse(304, headers), maxAgeS, usedCredits };
    return { ...plainResponse(200, headers, { bodyBytes: 100 }), maxAgeS, usedCredits };
  }

  requestStarted(role: Role): void {
    this.#busy.set(role, (this.#busy.get(role) ?? 0) + 1);
  }

  requestEnded(role: Role): void {
    this.#busy.set(role, (this.#busy.get(role) ?? 0) - 1);
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

  #announcedHeaders(role: Role, nowUs: number): Readonly<Record<string, string>> {
    const scope = this.#scopes.find(candidate => candidate.role === role);
    if (scope === undefined) return {};
    if (this.lie !== undefined) return falseRateLimitHeaders(this.lie.lie, scope.rate);
    return rateLimitHeaders(this.plan.server.announces, scope.rate, scope.enforcer.remaining(nowUs));
  }
}

function applies(role: Role | undefined, request: WireRequest): boolean {
  return request.units > 0 && (role === undefined || role === request.role);
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
