import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";

/** One law: sees every step of a world, and says what was wrong with it. */
export interface Law {
  see(fact: SimFact, touched: ReadonlySet<WireRequest>): string | undefined;
}

export interface LawMaker {
  /** As documents and traces cite it. */
  readonly title: string;
  readonly make: (plan: Plan) => Law;
}

export function ms(us: number): string {
  return `${Math.round(us) / 1000} ms`;
}
