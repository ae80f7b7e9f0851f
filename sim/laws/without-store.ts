import type { SimFact } from "../facts.ts";
import type { LawMaker } from "./law.ts";
import { JITTER_US } from "./scopes.ts";

/** S4: with `when_store_away: wait` or `refuse` a process sends nothing that a limit counts while its store is away. */
export const nothingWithoutStore: LawMaker = {
  title: "nothing is sent without the store if calls wait for it",
  make: (plan, occasion) => {
    const awaySinceUs = new Map<number, number>();
    return {
      check: (fact: SimFact) => {
        if (plan.store === undefined || plan.store.whenAway === "share") return undefined;
        if (fact.kind === "event" && fact.event.event_type === "store_away") awaySinceUs.set(fact.process, fact.atUs);
        if (fact.kind === "event" && fact.event.event_type === "store_back") awaySinceUs.delete(fact.process);
        if (fact.kind === "call" && awaySinceUs.has(fact.process)) occasion();
        if (fact.kind !== "dispatched" || fact.request.units === 0) return undefined;
        const { process, id, host } = fact.request;
        const sinceUs = awaySinceUs.get(process);
        // A trial call is sent up to `jitterMs` after its grant.
        if (sinceUs === undefined || fact.atUs - sinceUs <= JITTER_US) return undefined;
        occasion();
        return `request ${id} was sent to ${host} although the store of process ${process} is away`;
      },
    };
  },
};
