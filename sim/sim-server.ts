import type { Role } from "../src/policy/roles.ts";
import type { WireRequest } from "./facts.ts";
import type { Fault, HostPlan, RatePlan } from "./plan.ts";
import { announcing, lying } from "./rate-limit-headers.ts";
import { asking, type RetryAfterHeaders, wallMsAt } from "./retry-after.ts";
import { type Enforcer, enforcerOf } from "./servers/enforcer.ts";

export interface SimResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly bodyBytes: number;
  /** Breaks in the middle of its body. */
  readonly isCut: boolean;
  readonly asking: RetryAfterHeaders | undefined;
  /** Seconds for which it is fresh by its own words; 0 for not at all. */
  readonly maxAgeS: number;
  /** What it did not let pass, if anything. */
  readonly rejectedBy: string | undefined;
}

/** What a request is rejected by when too many are under way. */
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

/** One host as it stands in the world: it counts what arrives, at its own clock, and answers or does not. */
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
    for (const [role, lane] of Object.entries(plan.roleLimits)) {
      for (const rate of lane.rates) scopes.push(scope(role, role as Role, rate));
    }
    this.#scopes = scopes;
  }

  /** It has read the headers of a request. */
  receive(sending: WireRequest, isConditional: boolean, nowUs: number): SimResponse {
    const { server } = this.plan;
    const date = new Date(wallMsAt(nowUs, server.wallOffsetMs)).toUTCString();
    const full = this.#scopes.find(
      ({ role, enforcer }) => applies(role, sending) && !enforcer.has(sending.units, nowUs),
    );
    if (full !== undefined) return plainResponse(429, { date }, { rejectedBy: full.name });
    for (const { role, enforcer } of this.#scopes) if (applies(role, sending)) enforcer.count(sending.units, nowUs);
    const busy = (this.#busy.get(sending.role) ?? 0) + 1;
    const most = this.plan.roleLimits[sending.role]?.maxConcurrent ?? Number.POSITIVE_INFINITY;
    if (server.enforcesConcurrency && busy > most) return plainResponse(429, { date }, { rejectedBy: CONCURRENCY });
    if (this.throttle !== undefined) return this.#throttled(this.throttle, nowUs);
    if (this.outage !== undefined) return this.#failing(this.outage, date);
    const headers: Record<string, string | string[]> = { date, ...this.#announcedHeaders(sending.role, nowUs) };
    const { maxAgeS } = server;
    if (maxAgeS > 0) Object.assign(headers, { "cache-control": `max-age=${maxAgeS}`, etag: '"1"' });
    if (isConditional && maxAgeS > 0) return { ...plainResponse(304, headers), maxAgeS };
    return { ...plainResponse(200, headers, { bodyBytes: 100 }), maxAgeS };
  }

  requestStarted(role: Role): void {
    this.#busy.set(role, (this.#busy.get(role) ?? 0) + 1);
  }

  over(role: Role): void {
    this.#busy.set(role, (this.#busy.get(role) ?? 0) - 1);
  }

  #throttled({ status, form, seconds }: Throttle, nowUs: number): SimResponse {
    const retryAfter = asking(form, seconds, wallMsAt(nowUs, this.plan.server.wallOffsetMs));
    return { ...plainResponse(status, retryAfter.headers), asking: retryAfter };
  }

  #failing({ how }: Outage, date: string): SimResponse {
    return how === "cut"
      ? { ...plainResponse(200, { date }, { bodyBytes: 100 }), isCut: true }
      : plainResponse(how === "error" ? 500 : 502, { date });
  }

  #announcedHeaders(role: Role, nowUs: number): Readonly<Record<string, string>> {
    const scope = this.#scopes.find(candidate => candidate.role === role);
    if (scope === undefined) return {};
    if (this.lie !== undefined) return lying(this.lie.lie, scope.rate);
    return announcing(this.plan.server.announces, scope.rate, scope.enforcer.remaining(nowUs));
  }
}

function applies(role: Role | undefined, sending: WireRequest): boolean {
  return sending.units > 0 && (role === undefined || role === sending.role);
}

function plainResponse(
  status: number,
  headers: SimResponse["headers"],
  { bodyBytes = 0, rejectedBy }: { readonly bodyBytes?: number; readonly rejectedBy?: string } = {},
): SimResponse {
  return { status, headers, bodyBytes, isCut: false, asking: undefined, maxAgeS: 0, rejectedBy };
}
