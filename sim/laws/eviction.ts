import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/** L11: a key is evicted only when its state can no longer delay a request. */
export const unobservableEviction: LawMaker = {
  title: "eviction is unobservable",
  make: (plan, occasion) => new UnobservableEviction(plan, occasion),
};

class UnobservableEviction implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #lastWritten = new Map<string, { readonly request: WireRequest; readonly atUs: number }>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "written" && fact.request.units > 0) {
      const { request, atUs } = fact;
      this.#lastWritten.set(`${request.process} ${request.key} ${request.role}`, { request, atUs });
    }
    if (fact.kind !== "snapshot" || fact.isLast) return undefined;
    const keptKeys = new Set(fact.keys.map(({ host, role }) => `${fact.process} ${host} ${role}`));
    for (const [key, { request, atUs }] of this.#lastWritten) {
      // A reload may have joined the limits of all partitions.
      const common = `${request.process} ${request.host} ${request.role}`;
      if (request.process !== fact.process || keptKeys.has(key) || keptKeys.has(common)) continue;
      this.#occasion();
      const rates = this.#plan.hosts.find(({ name }) => name === request.host)?.roleLimits[request.role]?.rates ?? [];
      const longestUs = Math.max(...rates.map(({ windowMs }) => windowMs * 1000));
      if (fact.atUs - atUs < longestUs || request.endedUs === undefined)
        return `process ${fact.process} evicted ${request.host} (${request.role}) while its window still counts`;
    }
    return undefined;
  }
}
