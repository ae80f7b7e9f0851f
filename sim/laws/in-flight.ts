import type { SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { isSameBudget } from "./scopes.ts";

/**
 * L3: at most `max_concurrent` requests of a role, and `max_inflight` of a process, are in flight. If a reload joins the
 * limits of partitions, requests of all of them that are still in flight count together.
 */
export const fewInFlight: LawMaker = {
  title: "in flight within the slots",
  make: (plan, occasion) => new FewInFlight(plan, occasion),
};

class FewInFlight implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #out = new Set<WireRequest>();
  readonly #done = new Set<CallPlan>();
  readonly #policies: PoliciesInForce;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    if (fact.kind === "ended") this.#out.delete(fact.request);
    if (fact.kind === "done") {
      this.#done.add(fact.call);
      // Aborted before it was written: no `ended` fact has been emitted yet.
      for (const one of this.#out) if (one.call === fact.call && one.writtenUs === undefined) this.#out.delete(one);
    }
    // It is sent for calls that were coalesced with its own, which has ended. When those end, it ends without a fact.
    if (fact.kind === "written" && this.#done.has(fact.request.call)) this.#out.add(fact.request);
    if (fact.kind !== "dispatched" || this.#done.has(fact.request.call)) return undefined;
    this.#out.add(fact.request);
    const { process, host, role } = fact.request;
    const own = [...this.#out].filter(one => one.process === process);
    if (own.length >= this.#plan.maxInFlight) this.#occasion();
    if (own.length > this.#plan.maxInFlight)
      return `${own.length} requests of process ${process} are in flight; limit ${this.#plan.maxInFlight}`;
    const most = this.#plan.hosts.find(({ name }) => name === host)?.roleLimits[role]?.maxConcurrent ?? 0;
    const there = own.filter(one => this.#isSameBudget(one, fact.request, fact.atUs)).length;
    if (there >= most) this.#occasion();
    return there > most
      ? `${there} requests of process ${process} are in flight at ${host} (${role}); limit ${most}`
      : undefined;
  }

  #isSameBudget(one: WireRequest, request: WireRequest, atUs: number): boolean {
    const { process, host, role } = request;
    const reloadedUs = this.#policies.reloadedUs(process) ?? Number.NEGATIVE_INFINITY;
    // A trial call may have been granted before the reload.
    const mayBeFormer = atUs - reloadedUs <= this.#plan.breakers.jitterMs * 1000;
    if (this.#policies.of(process).isPartitioned || mayBeFormer) return isSameBudget(one, request);
    return one.host === host && one.role === role;
  }
}
