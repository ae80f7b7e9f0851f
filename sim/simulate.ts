import type { SimFact, WireRequest } from "./facts.ts";
import { ALL_LAWS } from "./laws/all.ts";
import type { Plan } from "./plan.ts";
import { SimWorld } from "./sim-world.ts";

export interface Violation {
  readonly law: string;
  readonly message: string;
  readonly atUs: number;
}

export interface SimulationResult {
  /** The first of each law. */
  readonly violations: readonly Violation[];
  /** Requests that went onto the wire. */
  readonly requests: number;
  readonly steps: number;
}

/** Runs a plan to its end and judges every step by every law. */
export async function simulate(plan: Plan, onFact?: (fact: SimFact) => void): Promise<SimulationResult> {
  const judges = ALL_LAWS.map(({ title, make }) => ({ title, law: make(plan) }));
  const violations: Violation[] = [];
  const broken = new Set<string>();
  const judge = (fact: SimFact, touched: ReadonlySet<WireRequest>) => {
    onFact?.(fact);
    for (const { title, law } of judges) {
      const message = law.see(fact, touched);
      if (message === undefined || broken.has(title)) continue;
      broken.add(title);
      violations.push({ law: title, message, atUs: fact.atUs });
    }
  };
  const { requests, steps } = await SimWorld.run(plan, judge);
  return { violations, requests, steps };
}
