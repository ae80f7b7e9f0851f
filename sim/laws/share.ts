import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import type { Law, LawMaker } from "./law.ts";
import { hostOf, JITTER_US, logOf, scopesOf } from "./scopes.ts";
import type { StampLog } from "./stamp-log.ts";

/**
 * S4: while its store is away a process keeps to its share, and counts what it sent itself before.
 */
export const share: LawMaker = {
  title: "share while the store is away",
  make: plan => new Share(plan),
};

class Share implements Law {
  readonly #plan: Plan;
  readonly #logs = new Map<string, StampLog>();
  /** Since when, and among how many. */
  readonly #away = new Map<number, { readonly sinceUs: number; readonly processes: number }>();
  readonly #judged = new WeakSet<WireRequest>();
  #widest = 1;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "reloaded") this.#widest = Math.max(this.#widest, fact.factor);
    if (fact.kind === "event") {
      const { event, process, atUs } = fact;
      if (event.event_type === "store_away") this.#away.set(process, { sinceUs: atUs, processes: event.processes });
      if (event.event_type === "store_back") this.#away.delete(process);
    }
    if (fact.kind === "dispatched") {
      const away = this.#away.get(fact.sending.process);
      if (away !== undefined && fact.atUs - away.sinceUs > JITTER_US) this.#judged.add(fact.sending);
    }
    return fact.kind === "written" && fact.sending.units > 0 ? this.#written(fact.sending, fact.atUs) : undefined;
  }

  #written(sending: WireRequest, atUs: number): string | undefined {
    const host = hostOf(this.#plan, sending);
    const away = this.#away.get(sending.process);
    for (const { name, rate } of scopesOf(host, sending)) {
      const log = logOf(this.#logs, `${sending.process} ${host.name} ${name}`);
      log.add(atUs, sending.units);
      if (away === undefined || away.processes < 2 || !this.#judged.has(sending)) continue;
      const { processes, sinceUs } = away;
      const { limit, windowMs } = scaled(rate, this.#widest);
      const allowed = limit >= processes ? Math.floor(limit / processes) : 1;
      const spanMs = (limit >= processes ? windowMs : windowMs * Math.ceil(processes / limit)) + host.guardMs;
      // What the whole window no longer counted when the store went away may have been forgotten by then.
      const rememberedUs = atUs - sinceUs + (windowMs + host.guardMs) * 1000;
      const count = log.within(Math.min(spanMs * 1000, rememberedUs), atUs);
      if (count > Math.max(allowed, sending.units))
        return `process ${sending.process} wrote ${count} to ${host.name} (${name}) within ${spanMs} ms as one of ${processes} without a store; ${allowed} may be`;
    }
    return undefined;
  }
}
