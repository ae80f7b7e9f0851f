import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import type { Law, LawMaker } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { hostOf, JITTER_US, logOf, scopesOf } from "./scopes.ts";
import type { StampLog } from "./stamp-log.ts";

/**
 * S4: while its store is away a process uses at most its share of each limit, counting its own earlier requests. A request
 * that needs more than the share is not sent.
 */
export const share: LawMaker = {
  title: "share while the store is away",
  make: (plan, occasion) => new Share(plan, occasion),
};

class Share implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #logs = new Map<string, StampLog>();
  /** Since when the store is away, and the number of processes that share the limits. */
  readonly #away = new Map<number, { readonly sinceUs: number; readonly processes: number }>();
  readonly #checked = new WeakSet<WireRequest>();
  readonly #policies: PoliciesInForce;
  #maxFactor = 1;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    if (fact.kind === "reloaded") this.#maxFactor = Math.max(this.#maxFactor, fact.factor);
    if (fact.kind === "event") {
      const { event, process, atUs } = fact;
      if (event.event_type === "store_away") this.#away.set(process, { sinceUs: atUs, processes: event.processes });
      if (event.event_type === "store_back") this.#away.delete(process);
    }
    if (fact.kind === "dispatched") {
      const away = this.#away.get(fact.request.process);
      if (away !== undefined && fact.atUs - away.sinceUs > JITTER_US) this.#checked.add(fact.request);
    }
    return fact.kind === "written" && fact.request.units > 0 ? this.#written(fact.request, fact.atUs) : undefined;
  }

  #written(request: WireRequest, atUs: number): string | undefined {
    const host = hostOf(this.#plan, request);
    const away = this.#away.get(request.process);
    for (const { name, rate, isTotal } of scopesOf(host, request)) {
      const log = logOf(this.#logs, `${request.process} ${host.name} ${name}`);
      log.add(atUs, request.units);
      if (isTotal && !this.#policies.of(request.process).hasTotals) continue;
      if (away === undefined || away.processes < 2 || !this.#checked.has(request)) continue;
      const { processes, sinceUs } = away;
      const { limit, windowMs } = scaled(rate, this.#maxFactor);
      const allowed = Math.floor(limit / processes);
      const spanMs = windowMs + host.guardMs;
      // Requests that had left the full window before the store went away need not be remembered.
      const rememberedUs = atUs - sinceUs + (windowMs + host.guardMs) * 1000;
      const count = log.within(Math.min(spanMs * 1000, rememberedUs), atUs);
      if (count >= allowed) this.#occasion();
      if (count > allowed)
        return `process ${request.process} wrote ${count} units to ${host.name} (${name}) within ${spanMs} ms as one of ${processes} without a store; limit ${allowed}`;
    }
    return undefined;
  }
}
