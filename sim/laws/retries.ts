import type { SimFact } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

const START = 3;
const EARNED = 0.2;

/**
 * B7: a host gets at most 1.2 attempts for each call, plus 3; and what is decided on in any stretch of time keeps to the
 * same, so that a good year pays for no storm.
 */
export const fewAttempts: LawMaker = {
  title: "attempts within 1.2 x calls + 3",
  make: () => new FewAttempts(),
};

interface HostAttempts {
  calls: number;
  attempts: number;
  budget: number;
  late: number;
}

class FewAttempts implements Law {
  readonly #sums = new Map<string, HostAttempts>();

  see(fact: SimFact): string | undefined {
    if (fact.kind === "call") {
      const sum = this.#sumOf(fact.process, fact.call.host);
      sum.calls += 1;
      // Who waits for somebody else's answer earns when he asks for himself, and that may be later.
      if (fact.call.method === "GET") sum.late += Math.max(0, sum.budget + EARNED - START);
      sum.budget = Math.min(START, sum.budget + EARNED);
    }
    if (fact.kind === "event" && fact.event.event_type === "http_retry") {
      const sum = this.#sumOf(fact.process, fact.event.host);
      sum.budget -= 1;
      if (sum.budget + sum.late < -1e-6) return `one retry too many is decided on at ${fact.event.host}`;
    }
    if (fact.kind !== "dispatched") return undefined;
    const { process, host } = fact.sending;
    const sum = this.#sumOf(process, host);
    sum.attempts += 1;
    const most = sum.calls * (1 + EARNED) + START;
    return sum.attempts > most ? `${sum.attempts} attempts for ${sum.calls} calls at ${host}` : undefined;
  }

  #sumOf(process: number, host: string): HostAttempts {
    const key = `${process} ${host}`;
    const sum = this.#sums.get(key) ?? { calls: 0, attempts: 0, budget: START, late: 0 };
    this.#sums.set(key, sum);
    return sum;
  }
}

/** B7: no attempt begins after the call's deadline, after its end, or beyond the attempts that it has. */
export const noLateAttempt: LawMaker = {
  title: "no attempt after the deadline or the end of its call",
  make: plan => new NoLateAttempt(plan),
};

class NoLateAttempt implements Law {
  readonly #plan: Plan;
  readonly #arrivedUs = new Map<CallPlan, number>();
  readonly #done = new Set<CallPlan>();
  /** When a loop last stood still. */
  #disturbedUs = Number.NEGATIVE_INFINITY;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "fault" && /stall|suspend/.test(fact.fault.kind)) this.#disturbedUs = fact.atUs;
    if (fact.kind === "done") this.#done.add(fact.call);
    if (fact.kind !== "dispatched") return undefined;
    const { call, attempt, id, dispatchedUs } = fact.sending;
    if (attempt > this.#plan.retryAttempts) return `request ${id} is attempt ${attempt} of call ${call.id}`;
    // Others may want the answer that this one was the first to ask for.
    if (this.#isShared(call)) return undefined;
    if (this.#done.has(call)) return `request ${id} went for call ${call.id}, which is over`;
    if (call.deadlineMs === undefined) return undefined;
    const sinceUs = dispatchedUs - (this.#arrivedUs.get(call) ?? 0);
    // Timers come late to a loop that stood still, and the one for the deadline need not be the first of them.
    if (this.#disturbedUs >= (this.#arrivedUs.get(call) ?? 0) || sinceUs <= call.deadlineMs * 1000 + 1000)
      return undefined;
    return `request ${id} went ${ms(sinceUs)} after call ${call.id} came; its deadline is ${call.deadlineMs} ms`;
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
