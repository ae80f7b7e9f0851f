import { type Budget, budgetsAbove } from "../limiter/budget.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";

/** The units that are requested from the store and not replied to, counted in every budget above their role budget. */
export class RequestedUnits {
  readonly #requested = new Map<RoleBudget, { readonly budgets: readonly Budget[]; readonly units: number }>();

  requested(roleBudget: RoleBudget, units: number): void {
    this.replied(roleBudget);
    const budgets = budgetsAbove(roleBudget);
    if (budgets.length === 0) return;
    this.#requested.set(roleBudget, { budgets, units });
    for (const budget of budgets) budget.requestedUnits += units;
  }

  /** The store has replied, or will not. */
  replied(roleBudget: RoleBudget): void {
    const known = this.#requested.get(roleBudget);
    if (known === undefined) return;
    this.#requested.delete(roleBudget);
    for (const budget of known.budgets) budget.requestedUnits -= known.units;
  }

  /** The limits have changed, and with them the budgets that are shared. */
  clear(): void {
    for (const roleBudget of [...this.#requested.keys()]) this.replied(roleBudget);
  }
}
