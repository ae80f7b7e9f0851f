import type { SimFact, WireRequest } from "../facts.ts";
import type { HostPlan, Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import { type Law, type LawMaker, ms } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { creditScopesOf, hostOf, isSameBudget, type RateScope } from "./scopes.ts";
import { isWithin, SentRequests } from "./sent-requests.ts";

/**
 * L6: a request is sent only when its credits fit into every window of credits, beside what the process has used. What a
 * response says counts instead of the estimate: less is returned at once, more counts from the response on.
 */
export const costsWithinWindows: LawMaker = {
  title: "costs within every window",
  make: (plan, occasion) => new CostsWithinWindows(plan, occasion),
};

class CostsWithinWindows implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #policies: PoliciesInForce;
  readonly #sent = new SentRequests();
  /** Requests that were sent while no window counted their credits: what they used is not known. */
  readonly #uncounted = new WeakSet<WireRequest>();
  /** When the response of a request has said what it used. */
  readonly #settledUs = new WeakMap<WireRequest, number>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    if (fact.kind === "head" && fact.usedCredits !== undefined) this.#settledUs.set(fact.request, fact.atUs);
    this.#sent.record(fact);
    if (fact.kind !== "dispatched") return undefined;
    const { request, atUs } = fact;
    const host = hostOf(this.#plan, request);
    const { hasTotals } = this.#policies.of(request.process);
    if (creditScopesOf(host, request).every(({ isTotal }) => isTotal && !hasTotals)) this.#uncounted.add(request);
    if (request.credits === 0) return undefined;
    for (const scope of creditScopesOf(host, request)) {
      const message = this.#check(scope, host, request, atUs);
      if (message !== undefined) return message;
    }
    return undefined;
  }

  #check({ name, rate, isTotal }: RateScope, host: HostPlan, request: WireRequest, atUs: number): string | undefined {
    const { factor, hasTotals } = this.#policies.of(request.process);
    if (isTotal && !hasTotals) return undefined;
    const { limit, windowMs } = scaled(rate, factor);
    const spanUs = (windowMs + host.guardMs) * 1000;
    const sent = this.#sent.of(request.process, host.name);
    const counted = isTotal ? sent : sent.filter(one => isSameBudget(one, request));
    const used = counted.reduce((sum, one) => sum + this.#usedSince(one, atUs - spanUs, atUs), 0);
    if (used + request.credits > limit) this.#occasion();
    return used > limit
      ? `request ${request.id} of process ${request.process} makes ${used} credits at ${host.name} (${name}) within ${ms(spanUs)}; limit ${limit}`
      : undefined;
  }

  /** Credits of a request that count after `fromUs`. */
  #usedSince(request: WireRequest, fromUs: number, nowUs: number): number {
    const { credits, usedCredits } = request;
    const settledUs = this.#settledUs.get(request);
    if (this.#uncounted.has(request)) return 0;
    if (settledUs === undefined) return isWithin(request, fromUs) ? credits : 0;
    // A trial call is sent up to `jitterMs` after its grant, and does not take back what came in between.
    const isKnown = nowUs - settledUs > this.#plan.breakers.jitterMs * 1000;
    const debt = isKnown && settledUs > fromUs ? Math.max(0, usedCredits - credits) : 0;
    return debt + (isWithin(request, fromUs) ? Math.min(credits, usedCredits) : 0);
  }
}
