import type { SimFact, WireRequest } from "./facts.ts";
import { ALL_LAWS } from "./laws/all.ts";
import type { Law } from "./laws/law.ts";
import type { Plan } from "./plan.ts";
import { SimWorld } from "./sim-world.ts";

export interface Violation {
  readonly law: string;
  readonly message: string;
  readonly atUs: number;
}

/** How often each law applied, by its title. */
export type Occasions = Readonly<Record<string, number>>;

export interface SimulationResult {
  /** The first violation of each law. */
  readonly violations: readonly Violation[];
  /** How often each law applied, by its title. */
  readonly occasions: Occasions;
  /** Requests that were sent. */
  readonly requests: number;
  readonly steps: number;
}

/** Simulates a plan and checks every fact against every law. */
export async function simulate(plan: Plan, onFact?: (fact: SimFact) => void): Promise<SimulationResult> {
  const occasions: Record<string, number> = {};
  const laws = ALL_LAWS.map(({ title, make }) => {
    occasions[title] = 0;
    return { title, law: make(plan, () => (occasions[title] = (occasions[title] ?? 0) + 1)) };
  });
  const violations: Violation[] = [];
  const violated = new Set<string>();
  const checkAll = (fact: SimFact, touched: ReadonlySet<WireRequest>) => {
    onFact?.(fact);
    for (const { title, law } of laws) {
      const message = checked(law, fact, touched);
      if (message === undefined || violated.has(title)) continue;
      violated.add(title);
      violations.push({ law: title, message, atUs: fact.atUs });
    }
  };
  const { requests, steps } = await SimWorld.run(plan, checkAll);
  return { violations, occasions, requests, steps };
}

/** Facts come from listeners of the hub, which survives one that throws: an error of a law is a violation too. */
function checked(law: Law, fact: SimFact, touched: ReadonlySet<WireRequest>): string | undefined {
  try {
    return law.check(fact, touched);
  } catch (error) {
    return `the law failed: ${String(error)}`;
  }
}
