import type { LawMaker } from "./law.ts";

const LOSSES: ReadonlySet<string> = new Set(["store-restart", "store-loss"]);

/** After the last fault every host and role serves again, every call ends, and a closed hub leaves no timer. */
export const liveness: LawMaker = {
  title: "liveness after the last fault",
  make: (plan, occasion) => ({
    check: fact => {
      if (fact.kind === "stuck" || (fact.kind === "done" && fact.isFinal)) occasion();
      if (fact.kind === "stuck") return fact.message;
      if (fact.kind !== "done" || !fact.isFinal || fact.status === 200) return undefined;
      const server = plan.hosts.find(({ name }) => name === fact.call.host)?.server;
      // After a fault of the store a server may have counted requests that the processes did not.
      const mayLoseCounts = plan.faults.some(({ kind }) => kind.startsWith("store-"));
      if (mayLoseCounts && fact.status === 429) return undefined;
      // A process notices with its next call that the store has lost its data, and refuses what it then cannot know.
      const mayRefuse = plan.store?.whenAway === "refuse" && plan.faults.some(({ kind }) => LOSSES.has(kind));
      if (mayRefuse && fact.error === "DOCSTOKG_RATE_LIMITED") return undefined;
      // A server that allows less than the policy keeps rejecting.
      const isPolicyRaised = plan.faults.some(
        fault => fault.kind === "reload" && (fault.factor > 1 || !fault.hasTotals),
      );
      if (server === undefined || server.enforcedShare < 1 || isPolicyRaised) return undefined;
      return `${fact.call.host} (${fact.call.role}) answers process ${fact.process} with ${fact.error ?? fact.status} after the last fault`;
    },
  }),
};
