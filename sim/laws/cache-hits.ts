import type { SimFact } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/**
 * L8: what is fresh in the cache is served at once and costs nothing: no request, no unit, and no notice of a circuit
 * that is open. Judged where the clocks of process and server agree; freshness is a matter of wall clocks.
 */
export const hitsCostNothing: LawMaker = {
  title: "a hit costs nothing",
  make: plan => new HitsCostNothing(plan),
};

class HitsCostNothing implements Law {
  readonly #plan: Plan;
  readonly #freshUntilUs = new Map<string, number>();
  readonly #pending = new Map<number, number>();
  readonly #mustHit = new Map<CallPlan, number>();
  readonly #isJudged: boolean;

  constructor(plan: Plan) {
    this.#plan = plan;
    const isStepping = plan.faults.some(({ kind }) => kind === "wall-step");
    this.#isJudged = !isStepping && plan.processes.every(({ wallOffsetMs }) => wallOffsetMs === 0);
  }

  see(fact: SimFact): string | undefined {
    if (!this.#isJudged) return undefined;
    if (fact.kind === "head" && fact.status === 200 && fact.freshUntilUs !== undefined)
      this.#pending.set(fact.sending.id, fact.freshUntilUs);
    // What a request that changes things has touched is forgotten.
    if (fact.kind === "head" && fact.sending.call.method === "POST")
      this.#freshUntilUs.delete(keyOf(fact.sending.process, fact.sending.call));
    if (fact.kind === "ended") {
      const { id, call, process } = fact.sending;
      const untilUs = this.#pending.get(id);
      this.#pending.delete(id);
      if (fact.how === "complete" && untilUs !== undefined && call.method === "GET" && this.#agrees(call))
        this.#freshUntilUs.set(keyOf(process, call), untilUs);
    }
    // Artifacts go to their files, and not through the cache.
    if (fact.kind === "call" && fact.call.method === "GET" && fact.call.role !== "artifact") {
      const untilUs = this.#freshUntilUs.get(keyOf(fact.process, fact.call)) ?? 0;
      if (untilUs > fact.atUs) this.#mustHit.set(fact.call, fact.atUs);
    }
    if (fact.kind === "dispatched" && this.#mustHit.has(fact.sending.call))
      return `request ${fact.sending.id} went for call ${fact.sending.call.id}, whose answer was fresh in the cache`;
    const sinceUs = fact.kind === "done" ? this.#mustHit.get(fact.call) : undefined;
    if (fact.kind !== "done" || sinceUs === undefined || !fact.call.isRead || fact.call.abortMs !== undefined)
      return undefined;
    return fact.status === 200 && fact.error === undefined
      ? undefined
      : `call ${fact.call.id} got ${fact.error ?? fact.status}, although its answer was fresh in the cache`;
  }

  #agrees({ host }: CallPlan): boolean {
    return this.#plan.hosts.find(({ name }) => name === host)?.server.wallOffsetMs === 0;
  }
}

function keyOf(process: number, { host, role, page }: CallPlan): string {
  return `${process} ${host} ${role} ${page}`;
}
