import type { LawMaker } from "./law.ts";

/** After the last fault every lane serves again, every call has ended, and a hub that is closed leaves nothing behind. */
export const liveness: LawMaker = {
  title: "liveness after the last fault",
  make: plan => ({
    see: fact => {
      if (fact.kind === "stuck") return fact.message;
      if (fact.kind !== "done" || !fact.isFinal || fact.status === 200) return undefined;
      const server = plan.hosts.find(({ name }) => name === fact.call.host)?.server;
      // Where a store was away or forgot, a window may be full of what nobody counted.
      const isForgetful = plan.faults.some(({ kind }) => kind.startsWith("store-"));
      if (isForgetful && fact.status === 429) return undefined;
      // One that enforces less than hubs were told goes on rejecting.
      const isToldMore = plan.faults.some(fault => fault.kind === "reload" && fault.factor > 1);
      if (server === undefined || server.enforcedShare < 1 || isToldMore) return undefined;
      return `${fact.call.host} (${fact.call.role}) answers process ${fact.process} with ${fact.error ?? fact.status} when all is well`;
    },
  }),
};
