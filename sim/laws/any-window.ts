import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { type PolicyVersion, scaled } from "../policy.ts";
import { type Law, type LawMaker, ms } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { hostOf, logOf, scopesOf } from "./scopes.ts";
import type { StampLog } from "./stamp-log.ts";

/**
 * L1 for the requests that one process writes, with the guard, under the policy from grant to write. Holds under all
 * faults of stores, clocks and event loops.
 */
export const anyWindowOfProcess: LawMaker = {
  title: "any window, at each process",
  make: (plan, occasion) => new AnyWindowOfProcess(plan, occasion),
};

class AnyWindowOfProcess implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #logs = new Map<string, StampLog>();
  readonly #policies: PoliciesInForce;
  readonly #policyOf = new WeakMap<WireRequest, PolicyVersion>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    if (fact.kind === "dispatched")
      this.#policyOf.set(fact.request, this.#policies.atGrant(fact.request.process, fact.atUs));
    if (fact.kind !== "written" || fact.request.units === 0) return undefined;
    const { request, atUs } = fact;
    const host = hostOf(this.#plan, request);
    // Its headers may be written after a reload, together with requests that were sent under the new policy.
    const now = this.#policies.of(request.process);
    const sentUnder = this.#policyOf.get(request) ?? now;
    const factor = Math.max(sentUnder.factor, now.factor);
    const hasTotals = sentUnder.hasTotals && now.hasTotals;
    for (const { name, rate, isTotal } of scopesOf(host, request)) {
      const log = logOf(this.#logs, `${request.process} ${host.name} ${name}`);
      log.add(atUs, request.units);
      if (isTotal && !hasTotals) continue;
      const { limit, windowMs } = scaled(rate, factor);
      const spanUs = (windowMs + host.guardMs) * 1000;
      const count = log.within(spanUs, atUs);
      if (count >= limit) this.#occasion();
      if (count > limit)
        return `process ${request.process} wrote ${count} units to ${host.name} (${name}) within ${ms(spanUs)}; limit ${limit}`;
    }
    return undefined;
  }
}
