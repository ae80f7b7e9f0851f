import type { SimFact } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/**
 * L8: a fresh response in the cache is served without a request, a unit or a check of the circuit. Checked only when
 * the wall clocks of process and server agree, because freshness depends on them.
 */
export const hitsCostNothing: LawMaker = {
  title: "a cache hit costs nothing",
  make: (plan, occasion) => new HitsCostNothing(plan, occasion),
};

class HitsCostNothing implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #freshUntilUs = new Map<string, number>();
  readonly #pending = new Map<number, number>();
  readonly #arrivedUs = new Map<CallPlan, number>();
  /** When each page was last invalidated. */
  readonly #invalidatedUs = new Map<string, number>();
  /** Calls whose response was fresh in the cache when they started. */
  readonly #mustHit = new Set<CallPlan>();
  readonly #isChecked: boolean;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    const isStepping = plan.faults.some(({ kind }) => kind === "wall-step");
    this.#isChecked = !isStepping && plan.processes.every(({ wallOffsetMs }) => wallOffsetMs === 0);
  }

  check(fact: SimFact): string | undefined {
    if (!this.#isChecked) return undefined;
    if (fact.kind === "head" && fact.status === 200 && fact.freshUntilUs !== undefined)
      this.#pending.set(fact.request.id, fact.freshUntilUs);
    // An unsafe request invalidates the cached response.
    if (fact.kind === "head" && fact.request.call.method === "POST")
      this.#invalidate(pageOf(fact.request.process, fact.request.call), fact.atUs);
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "ended") {
      const { id, call, process } = fact.request;
      const untilUs = this.#pending.get(id);
      this.#pending.delete(id);
      const isStored = fact.how === "complete" && call.method === "GET" && !this.#isOutdated(process, call);
      if (isStored && untilUs !== undefined && this.#hasExactClock(call))
        this.#freshUntilUs.set(keyOf(process, call), untilUs);
    }
    // Artifacts are not cached.
    if (fact.kind === "call" && fact.call.method === "GET" && fact.call.role !== "artifact") {
      const untilUs = this.#freshUntilUs.get(keyOf(fact.process, fact.call)) ?? 0;
      if (untilUs > fact.atUs) {
        this.#mustHit.add(fact.call);
        this.#occasion();
      }
    }
    if (fact.kind === "dispatched" && this.#mustHit.has(fact.request.call))
      return `request ${fact.request.id} was sent for call ${fact.request.call.id}, although its response was fresh in the cache`;
    if (fact.kind !== "done" || !this.#mustHit.has(fact.call)) return undefined;
    if (!fact.call.isRead || fact.call.abortMs !== undefined) return undefined;
    return fact.status === 200 && fact.error === undefined
      ? undefined
      : `call ${fact.call.id} got ${fact.error ?? fact.status}, although its response was fresh in the cache`;
  }

  /** In every partition: whether the request of one invalidates the response of another is not checked. */
  #invalidate(page: string, atUs: number): void {
    this.#invalidatedUs.set(page, atUs);
    for (const key of this.#freshUntilUs.keys()) if (key.startsWith(page)) this.#freshUntilUs.delete(key);
  }

  /** A response to a call that began before the page was invalidated may be older, and is not stored. */
  #isOutdated(process: number, call: CallPlan): boolean {
    const invalidatedUs = this.#invalidatedUs.get(pageOf(process, call)) ?? Number.NEGATIVE_INFINITY;
    return invalidatedUs >= (this.#arrivedUs.get(call) ?? Number.POSITIVE_INFINITY);
  }

  #hasExactClock({ host }: CallPlan): boolean {
    return this.#plan.hosts.find(({ name }) => name === host)?.server.wallOffsetMs === 0;
  }
}

function pageOf(process: number, { host, role, page }: CallPlan): string {
  return `${process} ${host} ${role} ${page} `;
}

/** Partitions share no response (law L13). */
function keyOf(process: number, call: CallPlan): string {
  return `${pageOf(process, call)}${call.partition ?? ""}`;
}
