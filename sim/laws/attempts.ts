import type { SimFact } from "../facts.ts";
import type { Law, LawMaker } from "./law.ts";

/** The retry budget of a new host, and its maximum. */
const BUDGET_MAX = 3;
/** Retries that each call adds to the budget. */
const BUDGET_PER_CALL = 0.2;

/**
 * B7: a host gets at most 1.2 attempts for each call, plus 3. The budget is capped at 3 retries, so that many
 * successful calls do not allow a burst of retries later.
 */
export const fewAttempts: LawMaker = {
  title: "attempts within 1.2 x calls + 3",
  make: (_plan, occasion) => new FewAttempts(occasion),
};

interface HostAttempts {
  calls: number;
  attempts: number;
  budget: number;
  /** Budget that coalesced calls may add later than their arrival. */
  laterBudget: number;
}

class FewAttempts implements Law {
  readonly #occasion: () => void;
  readonly #sums = new Map<string, HostAttempts>();

  constructor(occasion: () => void) {
    this.#occasion = occasion;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "call") {
      const sum = this.#sumOf(fact.process, fact.call.host);
      sum.calls += 1;
      // A coalesced call adds to the budget when it sends its own request, which may be later.
      if (fact.call.method === "GET") sum.laterBudget += Math.max(0, sum.budget + BUDGET_PER_CALL - BUDGET_MAX);
      sum.budget = Math.min(BUDGET_MAX, sum.budget + BUDGET_PER_CALL);
    }
    if (fact.kind === "event" && fact.event.event_type === "http_retry") {
      const sum = this.#sumOf(fact.process, fact.event.host);
      sum.budget -= 1;
      this.#occasion();
      if (sum.budget + sum.laterBudget < -1e-6) return `a retry at ${fact.event.host} exceeds the retry budget`;
    }
    if (fact.kind !== "dispatched") return undefined;
    const { process, host } = fact.request;
    const sum = this.#sumOf(process, host);
    sum.attempts += 1;
    if (sum.attempts > sum.calls) this.#occasion();
    const maxAttempts = sum.calls * (1 + BUDGET_PER_CALL) + BUDGET_MAX;
    return sum.attempts > maxAttempts ? `${sum.attempts} attempts for ${sum.calls} calls at ${host}` : undefined;
  }

  #sumOf(process: number, host: string): HostAttempts {
    const key = `${process} ${host}`;
    const sum = this.#sums.get(key) ?? { calls: 0, attempts: 0, budget: BUDGET_MAX, laterBudget: 0 };
    this.#sums.set(key, sum);
    return sum;
  }
}
