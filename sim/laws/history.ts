import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import { type Law, type LawMaker, ms } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { hostOf, isSameBudget, scopesOf } from "./scopes.ts";
import { isWithin, SentRequests } from "./sent-requests.ts";

/**
 * L1, L11: what was sent before a reload counts in every window of the new policy: in changed rates, in a total that was
 * added, and in the common limits when those of all partitions are joined.
 */
export const keepsHistory: LawMaker = {
  title: "what was sent counts after a reload",
  make: (plan, occasion) => new KeepsHistory(plan, occasion),
};

class KeepsHistory implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #policies: PoliciesInForce;
  readonly #sent = new SentRequests();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    this.#sent.record(fact);
    return fact.kind === "dispatched" && fact.request.units > 0 ? this.#check(fact.request, fact.atUs) : undefined;
  }

  #check(request: WireRequest, atUs: number): string | undefined {
    const { process } = request;
    const reloadedUs = this.#policies.reloadedUs(process);
    // A trial call may have been granted before the reload.
    if (reloadedUs === undefined || atUs - reloadedUs <= this.#plan.breakers.jitterMs * 1000) return undefined;
    const { factor, hasTotals, isPartitioned } = this.#policies.of(process);
    const host = hostOf(this.#plan, request);
    const isCounted = (one: WireRequest) =>
      isPartitioned ? isSameBudget(one, request) : one.host === request.host && one.role === request.role;
    for (const { name, rate, isTotal } of scopesOf(host, request)) {
      if (isTotal && !hasTotals) continue;
      const { limit, windowMs } = scaled(rate, factor);
      const fromUs = atUs - (windowMs + host.guardMs) * 1000;
      const counted = this.#sent
        .of(process, host.name)
        .filter(one => isWithin(one, fromUs) && (isTotal || isCounted(one)));
      if (counted.every(({ dispatchedUs }) => dispatchedUs >= reloadedUs)) continue;
      const units = counted.reduce((sum, one) => sum + one.units, 0);
      if (units >= limit) this.#occasion();
      if (units > limit)
        return `request ${request.id} of process ${process} makes ${units} units at ${host.name} (${name}) within ${ms(atUs - fromUs)}, some of them before the reload; limit ${limit}`;
    }
    return undefined;
  }
}
