import type { SimFact } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

/** B7: no attempt starts after the call's deadline or end, or beyond its number of attempts. */
export const noLateAttempt: LawMaker = {
  title: "no attempt after the deadline or the end of its call",
  make: plan => new NoLateAttempt(plan),
};

class NoLateAttempt implements Law {
  readonly #plan: Plan;
  readonly #arrivedUs = new Map<CallPlan, number>();
  readonly #done = new Set<CallPlan>();
  /** When an event loop was last stalled. */
  #disturbedUs = Number.NEGATIVE_INFINITY;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "fault" && /stall|suspend/.test(fact.fault.kind)) this.#disturbedUs = fact.atUs;
    if (fact.kind === "done") this.#done.add(fact.call);
    if (fact.kind !== "dispatched") return undefined;
    const { call, attempt, id, dispatchedUs } = fact.request;
    if (attempt > this.#plan.retryAttempts) return `request ${id} is attempt ${attempt} of call ${call.id}`;
    // Coalesced calls may still need the response.
    if (this.#isShared(call)) return undefined;
    if (this.#done.has(call)) return `request ${id} was sent for call ${call.id}, which had ended`;
    if (call.deadlineMs === undefined) return undefined;
    const sinceUs = dispatchedUs - (this.#arrivedUs.get(call) ?? 0);
    // After a stall timers are late, and the timer of the deadline may not be the first to run.
    if (this.#disturbedUs >= (this.#arrivedUs.get(call) ?? 0) || sinceUs <= call.deadlineMs * 1000 + 1000)
      return undefined;
    return `request ${id} was sent ${ms(sinceUs)} after call ${call.id} arrived; its deadline is ${call.deadlineMs} ms`;
  }

  #isShared({ id, page, host, role, process }: CallPlan): boolean {
    return this.#plan.calls.some(
      other =>
        other.id !== id &&
        other.page === page &&
        other.host === host &&
        other.role === role &&
        other.process === process,
    );
  }
}
