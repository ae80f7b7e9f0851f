import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/** L3, L5: nothing goes without a grant, and when all is over nothing is out: no unit, slot, place in line or timer. */
export const conservation: LawMaker = {
  title: "conservation",
  make: plan => new Conservation(plan),
};

class Conservation implements Law {
  readonly #granted = new Map<string, number>();
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "event") this.#countGrant(fact.process, fact.event);
    if (fact.kind === "dispatched") return this.#spendGrant(fact.sending);
    if (fact.kind === "store-look") return this.#storeAtEnd(fact.pending);
    if (fact.kind !== "look" || !fact.isLast) return undefined;
    const { process, calls, inFlight, waiting, lanes } = fact;
    if (calls + inFlight + waiting > 0)
      return `process ${process} ends with ${calls} calls, ${inFlight} in flight, ${waiting} waiting`;
    const left = lanes.find(({ used, inFlight: busy }) => used !== 0 || busy !== 0);
    return left && `process ${process} ends with ${left.used} units and ${left.inFlight} slots of ${left.host} out`;
  }

  #countGrant(process: number, event: Extract<SimFact, { kind: "event" }>["event"]): void {
    const isGrant = event.event_type === "ratelimit.acquire" && event.outcome === "granted";
    if (isGrant) this.#add(`${process} ${event.key} ${event.role}`, 1);
    else if (event.event_type === "rate_head_skipped") this.#add(`${process} ${event.host} ${event.role}`, 1);
  }

  #spendGrant({ process, host, role, id }: WireRequest): string | undefined {
    const left = this.#add(`${process} ${host} ${role}`, -1);
    return left < 0 ? `request ${id} went to ${host} (${role}) without a grant` : undefined;
  }

  #add(key: string, change: number): number {
    const sum = (this.#granted.get(key) ?? 0) + change;
    this.#granted.set(key, sum);
    return sum;
  }

  /** What the dead had out goes when its lease ends; what a store forgot it cannot say. */
  #storeAtEnd(pending: number): string | undefined {
    const isExcused = this.#plan.faults.some(({ kind }) => kind === "kill" || kind.startsWith("store-"));
    return pending > 0 && !isExcused ? `${pending} units are out of the store when all is over` : undefined;
  }
}

/** L3: no more are in flight at once than a role's `max_concurrent`, or over all hosts than `max_inflight`. */
export const fewInFlight: LawMaker = {
  title: "in flight within the slots",
  make: plan => new FewInFlight(plan),
};

class FewInFlight implements Law {
  readonly #plan: Plan;
  readonly #out = new Set<WireRequest>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "ended") this.#out.delete(fact.sending);
    if (fact.kind === "done") {
      // Given up before it was written: the wire does not know yet.
      for (const one of this.#out) if (one.call === fact.call && one.writtenUs === undefined) this.#out.delete(one);
    }
    if (fact.kind !== "dispatched") return undefined;
    this.#out.add(fact.sending);
    const { process, host, role } = fact.sending;
    const own = [...this.#out].filter(one => one.process === process);
    if (own.length > this.#plan.maxInFlight)
      return `${own.length} of process ${process} are in flight; ${this.#plan.maxInFlight} may be`;
    const most = this.#plan.hosts.find(({ name }) => name === host)?.roleLimits[role]?.maxConcurrent ?? 0;
    const there = own.filter(one => one.host === host && one.role === role).length;
    return there > most
      ? `${there} of process ${process} are in flight at ${host} (${role}); ${most} may be`
      : undefined;
  }
}

/** L11: a lane is forgotten only when nothing in it could delay anybody. */
export const unobservableEviction: LawMaker = {
  title: "eviction is unobservable",
  make: plan => new UnobservableEviction(plan),
};

class UnobservableEviction implements Law {
  readonly #plan: Plan;
  readonly #lastUs = new Map<string, { readonly sending: WireRequest; readonly atUs: number }>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "written" && fact.sending.units > 0) {
      const { sending, atUs } = fact;
      this.#lastUs.set(`${sending.process} ${sending.host} ${sending.role}`, { sending, atUs });
    }
    if (fact.kind !== "look" || fact.isLast) return undefined;
    const known = new Set(fact.lanes.map(({ host, role }) => `${fact.process} ${host} ${role}`));
    for (const [key, { sending, atUs }] of this.#lastUs) {
      if (sending.process !== fact.process || known.has(key)) continue;
      const rates = this.#plan.hosts.find(({ name }) => name === sending.host)?.roleLimits[sending.role]?.rates ?? [];
      const longestUs = Math.max(...rates.map(({ windowMs }) => windowMs * 1000));
      if (fact.atUs - atUs < longestUs || sending.endedUs === undefined)
        return `process ${fact.process} has forgotten ${sending.host} (${sending.role}) while its window still counts`;
    }
    return undefined;
  }
}
