import type { SimFact } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

/** Reads of the clock between the call and the start of its deadline, and between the last check and the sending. */
const CLOCK_READS = 5;

/** B7: no attempt starts after the call's deadline or end, or beyond its number of attempts. */
export const noLateAttempt: LawMaker = {
  title: "no attempt after the deadline or the end of its call",
  make: (plan, occasion) => new NoLateAttempt(plan, occasion),
};

class NoLateAttempt implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #arrivedUs = new Map<CallPlan, number>();
  readonly #done = new Set<CallPlan>();
  /** When the machine was last suspended. Its clock stopped, and deadlines moved. */
  #suspendedUs = Number.NEGATIVE_INFINITY;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "fault" && fact.fault.kind === "suspend") this.#suspendedUs = fact.atUs;
    if (fact.kind === "done") this.#done.add(fact.call);
    if (fact.kind !== "dispatched") return undefined;
    const { call, attempt, id, dispatchedUs } = fact.request;
    this.#occasion();
    if (attempt > this.#plan.retryAttempts) return `request ${id} is attempt ${attempt} of call ${call.id}`;
    // Coalesced calls may still need the response.
    if (this.#isShared(call)) return undefined;
    if (this.#done.has(call)) return `request ${id} was sent for call ${call.id}, which had ended`;
    if (call.deadlineMs === undefined) return undefined;
    const arrivedUs = this.#arrivedUs.get(call) ?? 0;
    const sinceUs = dispatchedUs - arrivedUs;
    const { computeUs = 0 } = this.#plan.processes[call.process] ?? {};
    if (this.#suspendedUs >= arrivedUs || sinceUs <= call.deadlineMs * 1000 + computeUs * CLOCK_READS) return undefined;
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
