import type { LawMaker } from "./law.ts";
import { hostOf } from "./scopes.ts";

/** A server that counts as it says rejects nothing, however it counts. */
export const noRejection: LawMaker = {
  title: "no rejection by an honest server",
  make: plan => {
    const isForgetful = plan.faults.some(({ kind }) => kind.startsWith("store-") || kind === "reload");
    return {
      see: fact => {
        if (fact.kind !== "rejected" || isForgetful) return undefined;
        const { server, name } = hostOf(plan, fact.sending);
        if (server.enforcedShare < 1) return undefined;
        return `${name} rejected request ${fact.sending.id} (${fact.by}, ${server.model})`;
      },
    };
  },
};
