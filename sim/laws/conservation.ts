import { commonName } from "../../src/policy/partition-name.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { joinsPartitions } from "../policy.ts";
import type { Law, LawMaker } from "./law.ts";

/** L3, L5: no request is sent without a grant, and at the end no unit, slot or queued call is left. */
export const conservation: LawMaker = {
  title: "conservation",
  make: (plan, occasion) => new Conservation(plan, occasion),
};

class Conservation implements Law {
  readonly #occasion: () => void;
  readonly #granted = new Map<string, number>();
  readonly #plan: Plan;
  readonly #joinsPartitions: boolean;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#joinsPartitions = joinsPartitions(plan);
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "event") this.#countGrant(fact.process, fact.event);
    if (fact.kind === "dispatched") return this.#useGrant(fact.request);
    if (fact.kind === "store-snapshot") return this.#storeAtEnd(fact.pending);
    if (fact.kind !== "snapshot" || !fact.isLast) return undefined;
    this.#occasion();
    const { process, calls, inFlight, waiting, keys } = fact;
    if (calls + inFlight + waiting > 0)
      return `process ${process} ends with ${calls} calls, ${inFlight} in flight, ${waiting} waiting`;
    const left = keys.find(({ used, inFlight: busy }) => used !== 0 || busy !== 0);
    return left && `process ${process} ends with ${left.used} units and ${left.inFlight} slots of ${left.host} in use`;
  }

  #countGrant(process: number, event: Extract<SimFact, { kind: "event" }>["event"]): void {
    const isGrant = event.event_type === "ratelimit.acquire" && event.outcome === "granted";
    if (isGrant) this.#add(`${process} ${this.#nameOf(event.key)} ${event.role}`, 1);
    else if (event.event_type === "rate_head_skipped")
      this.#add(`${process} ${this.#nameOf(event.host)} ${event.role}`, 1);
  }

  #useGrant({ process, host, role, key, id }: WireRequest): string | undefined {
    const left = this.#add(`${process} ${this.#nameOf(key)} ${role}`, -1);
    this.#occasion();
    return left < 0 ? `request ${id} was sent to ${host} (${role}) without a grant` : undefined;
  }

  #add(key: string, change: number): number {
    const sum = (this.#granted.get(key) ?? 0) + change;
    this.#granted.set(key, sum);
    return sum;
  }

  /** Where a reload joins the limits of partitions, a grant may have either name. */
  #nameOf(key: string): string {
    return this.#joinsPartitions ? commonName(key) : key;
  }

  /** Not checked after a kill, whose lease ends later, or after a fault of the store, which may lose settlements. */
  #storeAtEnd(pending: number): string | undefined {
    this.#occasion();
    const isExcused = this.#plan.faults.some(({ kind }) => kind === "kill" || kind.startsWith("store-"));
    return pending > 0 && !isExcused ? `${pending} units are still leased from the store at the end` : undefined;
  }
}
