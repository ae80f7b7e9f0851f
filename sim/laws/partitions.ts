import type { CallPlan } from "../plan.ts";
import type { LawMaker } from "./law.ts";

/** L13: a response is given only to calls of the partition that it was requested for, from the cache or shared. */
export const ownResponses: LawMaker = {
  title: "partitions share no response",
  make: (_plan, occasion) => {
    /** What was answered to each process, by page and partition. */
    const answered = new Set<string>();
    return {
      check: fact => {
        if (fact.kind === "head") answered.add(keyOf(fact.request.process, fact.request.call));
        if (fact.kind !== "done" || fact.status !== 200) return undefined;
        const isOwn = answered.has(keyOf(fact.process, fact.call));
        if (fact.call.partition !== undefined || !isOwn) occasion();
        if (isOwn) return undefined;
        const { id, partition = "no partition" } = fact.call;
        return `call ${id} of ${partition} got a response, and none was requested for it`;
      },
    };
  },
};

function keyOf(process: number, { host, role, page, partition = "" }: CallPlan): string {
  return `${process} ${host} ${role} ${page} ${partition}`;
}
