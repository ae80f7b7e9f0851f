import type { LawMaker } from "./law.ts";
import { hostOf } from "./scopes.ts";

/** A server that allows what it announces rejects no request, whichever algorithm it uses. */
export const noRejection: LawMaker = {
  title: "no rejection by an honest server",
  make: (plan, occasion) => {
    const mayLoseCounts = plan.faults.some(({ kind }) => kind.startsWith("store-") || kind === "reload");
    return {
      check: fact => {
        if (mayLoseCounts || (fact.kind !== "arrived" && fact.kind !== "rejected")) return undefined;
        const { server, name } = hostOf(plan, fact.request);
        if (server.enforcedShare < 1) return undefined;
        occasion();
        return fact.kind === "rejected"
          ? `${name} rejected request ${fact.request.id} (${fact.by}, ${server.model})`
          : undefined;
      },
    };
  },
};
