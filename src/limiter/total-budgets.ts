import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { Route } from "../policy/limit-policies.ts";
import { Budget } from "./budget.ts";

/** The budgets that several role budgets share: the totals of hosts and services. */
export class TotalBudgets {
  /** Nothing is evicted. A service with `per_host` and a `total` has one for each host that is called. */
  readonly #byName = new Map<string, Budget>();
  /** Called for each new one. */
  readonly #onCreate: (total: Budget, route: Route) => void;

  constructor(onCreate: (total: Budget, route: Route) => void) {
    this.#onCreate = onCreate;
  }

  get names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /** The lowest total of a route, with those above it, each created on first use; undefined if it has none. */
  of(route: Route, aimd: AimdPolicy): Budget | undefined {
    return route.above.reduceRight<Budget | undefined>((outer, { name, policy }) => {
      const total = this.#byName.get(name) ?? this.#create(new Budget(name, policy, outer), route);
      // A reload visits only the totals of existing role budgets; the others still have the old policy.
      if (total.policy !== policy) total.reload(policy, aimd);
      total.above = outer;
      return total;
    }, undefined);
  }

  /**
   * A total that a reload removes starts again if it comes back, with what its role budgets have sent. Otherwise these
   * requests would count twice.
   */
  drop(name: string): void {
    this.#byName.delete(name);
  }

  #create(total: Budget, route: Route): Budget {
    this.#onCreate(total, route);
    this.#byName.set(total.name, total);
    return total;
  }
}
